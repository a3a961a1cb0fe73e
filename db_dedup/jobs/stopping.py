"""Scans that end before they are done, because the program is to stop."""

import threading

from db_dedup.errors import DedupError
from db_dedup.progress import Progress


class StoppedError(DedupError):
    """The scan was stopped by the user or a signal."""

    def __init__(self) -> None:
        super().__init__("the scan was stopped; the views still show the last complete answer")


class StoppableProgress:
    """Notifies another progress, and ends the scan at its next step once `stop` is set."""

    def __init__(self, progress: Progress, stop: threading.Event) -> None:
        """Wrap a progress; `stop` ends the scan."""
        self._progress, self._stop = progress, stop

    def start(self, step: str, total: int | None) -> None:
        """Begin a step, unless the scan is to stop."""
        self._check()
        self._progress.start(step, total)

    def advance(self, amount: int) -> None:
        """Report that so much more is done, unless the scan is to stop."""
        self._check()
        self._progress.advance(amount)

    def finish(self) -> None:
        """End the step."""
        self._progress.finish()

    def _check(self) -> None:
        if self._stop.is_set():
            raise StoppedError
