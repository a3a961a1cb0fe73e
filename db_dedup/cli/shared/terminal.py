"""What a person at the terminal sees: lines and progress bars, all on stderr."""

import io
import os
import sys
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self, cast

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

from db_dedup.present.visible import visible
from db_dedup.translation import tr


class _Stderr:
    """The present stderr, on which a line that cannot be written is left out.

    The disk of the log may be full, or its reader gone: a worker or a scan goes on all the same.
    """

    def write(self, text: str) -> int:
        """Write a text, if that is possible; return its length."""
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, if that is possible."""
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


stderr = Console(file=cast(IO[str], _Stderr()), highlight=False)


def open_missing_streams() -> None:
    """Open the null device for each standard stream that the caller closed: Python has None for it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it stays


def replace_what_cannot_be_shown() -> None:
    """Let stdout show "?" for a character that its encoding does not have.

    stdin reads broken bytes as U+FFFD, and stderr shows an escape, such as `\\U0001f600`, as Python has it.
    """
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def has_colour(console: Console) -> bool:
    """Return whether the console shows colours; a pipe and `NO_COLOR` have none."""
    return console.color_system is not None and not console.no_color


def say(template: str, /, **fields: object) -> None:
    """Print one line on stderr in the reader's language: no markup, no wrapping, no command to the terminal.

    Args:
        template: the line in English, for `str.format`. Without fields it is taken as it is, braces included.
        fields: the values by their names in the template.
    """
    stderr.print(visible(tr(template, **fields)), markup=False, emoji=False, soft_wrap=True)


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
        self._task = self._bars.add_task(tr(step), total=total)

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
