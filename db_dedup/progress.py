"""How a long job reports its steps: a protocol, and the one that reports nothing.

The command line brings one that draws bars; a library user gets silence unless they pass their own.
"""

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
