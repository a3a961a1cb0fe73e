"""What a person at the terminal sees: lines and progress bars, all on stderr."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.text import Text

stderr = Console(stderr=True, highlight=False)


def say(line: str) -> None:
    """One line on stderr, as it is: no markup, no wrapping."""
    stderr.print(line, markup=False, emoji=False, soft_wrap=True)


class _RateColumn(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", style="progress.data.speed")


class TerminalProgress:
    """Bars with amount, rate and remaining time; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        """Lay out the bars; they show from `start` on."""
        self._bars = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=stderr,
            disable=not stderr.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        """Show the bars."""
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""
        self._bars.stop()

    def start(self, step: str, total: int | None) -> None:
        """Begin a bar."""
        self._task = self._bars.add_task(step, total=total)

    def advance(self, amount: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def finish(self) -> None:
        """Fill the bar."""
        if self._task is not None:
            done = self._bars.tasks[self._task].completed
            self._bars.update(self._task, total=done, completed=done)
            self._task = None
