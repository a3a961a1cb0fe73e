"""What a person at the terminal sees: lines and progress bars, all on stderr."""

import io
import re
import sys
from types import TracebackType
from typing import Final, Self

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

COMMANDING: Final = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff"
"""Characters that move the cursor, command the terminal or change the direction of writing, as a regular
expression names them in brackets."""
_COMMANDING: Final = re.compile(f"[{COMMANDING}]")


def replace_what_cannot_be_shown() -> None:
    """Let stdout show "?" for a character that its encoding does not have.

    stdin reads broken bytes as U+FFFD, and stderr shows an escape, such as `\\U0001f600`, as Python has it.
    """
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def visible(text: str) -> str:
    """The text with an escape such as `\\x1b` for each character that would command the terminal."""
    return _COMMANDING.sub(lambda found: ascii(found[0])[1:-1], text)


def say(line: str) -> None:
    """One line on stderr: no markup, no wrapping, and no command to the terminal."""
    stderr.print(visible(line), markup=False, emoji=False, soft_wrap=True)


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
            SpinnerColumn("dots" if stderr.encoding.startswith("utf") else "line"),
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
