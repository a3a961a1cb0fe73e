"""Incremental processing: take changes out of the queues of some tables and keep their answers right."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DedupError
from db_dedup.jobs.table_worker import BATCH_CHANGES, Batch, TableWorker, WorkerTable

__all__ = ["BATCH_CHANGES", "Batch", "ChangeWorker", "TableWorker", "WorkerTable"]

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 30.0


class ChangeWorker:
    """Handles the changes of several tables in turn."""

    def __init__(
        self,
        tables: Sequence[TableWorker],
        poll_seconds: float = 0.5,
        on_batch: Callable[[Batch], None] = lambda _: None,
    ) -> None:
        """Take the tables, how long to wait where nothing is to do, and whom to tell of each batch."""
        self._tables, self._poll_seconds, self._on_batch = tables, poll_seconds, on_batch

    def run(self, stop: threading.Event, *, drain: bool = False) -> None:
        """Work until told to stop, or, to drain, until no queue holds a change.

        A batch at work is finished first. A database that is away is waited for, longer each time.

        Raises:
            DedupError: something that no retry mends.
        """
        pause = _FIRST_PAUSE_SECONDS
        while not stop.is_set():
            try:
                is_busy = self._work_once(stop)
                if drain and not is_busy and all(table.is_drained() for table in self._tables):
                    return
                pause = _FIRST_PAUSE_SECONDS
                if not is_busy:
                    stop.wait(self._poll_seconds)
            except (DedupError, SQLAlchemyError) as error:
                told = self._told(error)
                if not told.is_transient:
                    raise told from error
                logger.warning("%s: trying again in %.1f s", told, pause)
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _work_once(self, stop: threading.Event) -> bool:
        """One batch of every table; True where there was something to do."""
        is_busy = False
        for table in self._tables:
            batch = None if stop.is_set() else table.step()
            if batch is not None:
                self._on_batch(batch)
                is_busy = True
                stop.wait(table.gap_seconds)
        return is_busy

    def _told(self, error: DedupError | SQLAlchemyError) -> DedupError:
        """A driver's error in the database's own words."""
        return self._tables[0].translate_error(error) if isinstance(error, SQLAlchemyError) else error
