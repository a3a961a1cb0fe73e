"""How a long job reports its steps: a protocol, and the one that reports nothing.

The command line passes one that draws bars; library calls report nothing unless they are given one.
"""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Is called at each step of a long job."""

    def start(self, step: str, total: int | None) -> None:
        """Begin a step; `total` is its number of rows or items, None if unknown."""

    def advance(self, amount: int) -> None:
        """Add to what is done of the current step."""

    def finish(self) -> None:
        """End the current step."""


class NullProgress:
    """Reports nothing."""

    def start(self, step: str, total: int | None) -> None:
        """Ignore the start of a step."""

    def advance(self, amount: int) -> None:
        """Ignore an advance."""

    def finish(self) -> None:
        """Ignore the end of a step."""


_when_compiling: list[Callable[[bool], None]] = []


def when_compiling(report: Callable[[bool], None]) -> None:
    """Call this once, when the first kernel is compiled: that takes seconds after an installation.

    Args:
        report: is called with True if later processes find what is compiled, and with False if there is no
            folder for it, so that each process compiles.
    """
    _when_compiling[:] = [report]


def report_compiling(is_kept: bool) -> None:
    """Report that a kernel is being compiled, and whether later processes find it, unless that was done."""
    while _when_compiling:
        _when_compiling.pop()(is_kept)
