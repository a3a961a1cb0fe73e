"""How long work tells where it stands: a protocol, and the two that need no terminal.

The command line brings one that draws bars; a library user gets silence unless they pass their own.
"""

import logging
from typing import Protocol

logger = logging.getLogger(__name__)


class Progress(Protocol):
    """Told of each step of a long job as it goes."""

    def start(self, step: str, total: int | None) -> None:
        """A step begins; `total` is its amount of rows or items where it is known."""

    def advance(self, amount: int) -> None:
        """So much more of the current step is done."""

    def finish(self) -> None:
        """The current step is over."""


class NullProgress:
    """Says nothing."""

    def start(self, step: str, total: int | None) -> None:
        """Ignore the start of a step."""

    def advance(self, amount: int) -> None:
        """Ignore an advance."""

    def finish(self) -> None:
        """Ignore the end of a step."""


class LogProgress:
    """One log line when a step ends, for jobs that run without a terminal."""

    def __init__(self) -> None:
        self._step, self._done = "", 0

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        """Remember the step."""
        self._step, self._done = step, 0

    def advance(self, amount: int) -> None:
        """Count."""
        self._done += amount

    def finish(self) -> None:
        """Log what was done."""
        logger.info("%s: %d", self._step, self._done, extra={"step": self._step, "amount": self._done})
