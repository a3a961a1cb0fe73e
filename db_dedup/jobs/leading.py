"""Work that one of several instances does, and that another takes over when it ends."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.leadership import LeaderLock
from db_dedup.errors import DedupError
from db_dedup.flow.threads import starting_threads

Work = Callable[[threading.Event], None]
"""Works until the event is set."""

_SECONDS_BETWEEN_ATTEMPTS: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 2.0


class Leading:
    """Does its work while it holds a lock."""

    def __init__(
        self,
        lock: LeaderLock,
        works: Sequence[Work],
        on_change: Callable[[bool], None],
        translate_error: Callable[[SQLAlchemyError], DedupError],
        on_fault: Callable[[DedupError], None],
    ) -> None:
        """Prepare.

        Args:
            lock: of the instances.
            works: what to do, each in a thread of its own.
            on_change: is called with True when this instance begins to lead; with False when another leads.
            translate_error: gives a driver's error in the words of its dialect.
            on_fault: is called if the database cannot be asked who leads, once for each reason in a row.
        """
        self._lock, self._works, self._on_change = lock, works, on_change
        self._translate_error, self._on_fault = translate_error, on_fault
        self._told: str | None = None

    def run(self, stop: threading.Event) -> None:
        """Lead or wait until `stop` is set.

        Raises:
            Exception: what one of the works has raised; the others have ended then.
        """
        while not stop.is_set():
            if self._acquire():
                self._told = None
                self._on_change(True)
                try:
                    self._work(stop)
                finally:
                    self._lock.release()
            else:
                stop.wait(_SECONDS_BETWEEN_ATTEMPTS)

    def _acquire(self) -> bool:
        """Take the lock; report why it cannot be taken, unless that was the last report."""
        try:
            is_ours = self._lock.acquire()
        except SQLAlchemyError as error:
            fault = self._translate_error(error)
            if self._is_news(str(fault)):
                self._on_fault(fault)
            return False
        if not is_ours and self._is_news(""):
            self._on_change(False)
        return is_ours

    def _is_news(self, reason: str) -> bool:
        """Note why this instance waits: the fault, or nothing if another leads."""
        is_news, self._told = reason != self._told, reason
        return is_news

    def _work(self, stop: threading.Event) -> None:
        ended = threading.Event()
        with ThreadPoolExecutor(len(self._works), "db-dedup-leader") as threads:
            try:
                with starting_threads():
                    running = [threads.submit(work, ended) for work in self._works]
                while not (
                    stop.wait(_SECONDS_BETWEEN_LOOKS)
                    or any(one.done() for one in running)
                    or not self._lock.is_held()
                ):
                    pass
            finally:
                ended.set()
        for one in running:
            one.result()
