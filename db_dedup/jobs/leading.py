"""Work that one of several instances does, and that another takes over when it ends."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.leadership import LeaderLock

logger = logging.getLogger(__name__)

Work = Callable[[threading.Event], None]
"""Works until the event is set."""

_SECONDS_BETWEEN_ATTEMPTS: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 2.0


class Leading:
    """Does its work while it holds a lock."""

    def __init__(self, lock: LeaderLock, works: Sequence[Work], on_change: Callable[[bool], None]) -> None:
        """Prepare.

        Args:
            lock: of the instances.
            works: what to do, each in a thread of its own.
            on_change: is called with True when this instance begins to lead; with False when another leads,
                or when it has stopped leading.
        """
        self._lock, self._works, self._on_change = lock, works, on_change
        self._is_told_to_wait = False

    def run(self, stop: threading.Event) -> None:
        """Lead or wait until `stop` is set.

        Raises:
            Exception: what one of the works has raised; the others have ended then.
        """
        while not stop.is_set():
            if self._acquire():
                self._is_told_to_wait = False
                self._on_change(True)
                try:
                    self._work(stop)
                finally:
                    self._lock.release()
                if not stop.is_set():
                    self._wait_for_turn()
            else:
                self._wait_for_turn()
                stop.wait(_SECONDS_BETWEEN_ATTEMPTS)

    def _wait_for_turn(self) -> None:
        if not self._is_told_to_wait:
            self._is_told_to_wait = True
            self._on_change(False)

    def _acquire(self) -> bool:
        try:
            return self._lock.acquire()
        except SQLAlchemyError as error:
            logger.info("no lock could be asked for: %s", type(error).__name__)
            return False

    def _work(self, stop: threading.Event) -> None:
        ended = threading.Event()
        with ThreadPoolExecutor(len(self._works), "db-dedup-leader") as threads:
            try:
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
