"""The changes of one table, batch after batch.

A batch is one transaction: the changes leave the queue and their result is written, or neither. It begins by
locking the table's row among the watched tables: however many workers there are, one at a time writes the
answer of a table. The lock ends with the transaction, also if the process dies.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.errors import is_of_a_row
from db_dedup.errors import DedupError
from db_dedup.jobs.garbage import collecting_seldom
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.stopping import StoppedError
from db_dedup.jobs.worker.batch_faults import BatchFaults
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES, BatchSize
from db_dedup.jobs.worker.broken_rows import BrokenRows
from db_dedup.jobs.worker.change_batches import ChangeBatches
from db_dedup.jobs.worker.driver_errors import translate_driver_error
from db_dedup.jobs.worker.increments import Increments
from db_dedup.jobs.worker.index_folding import IndexFolding
from db_dedup.jobs.worker.scan_choice import ScanChoice, Task
from db_dedup.jobs.worker.trigger_guard import TriggerGuard
from db_dedup.jobs.worker.worker_scan import WorkerScan
from db_dedup.jobs.worker.worker_table import Batch, WorkerTable
from db_dedup.store import changes

logger = logging.getLogger(__name__)

# So many rows take about as long one by one as in the batches that look for the broken one among them.
_TRIED_ONE_BY_ONE: Final = 16


class TableWorker:
    """Handles the changes of one table."""

    def __init__(self, table: WorkerTable, batch_changes: int = BATCH_CHANGES) -> None:
        """Prepare; nothing is asked of the database yet."""
        self.name = table.name
        self._table, self._pace = table, pace_of(table.dialect)
        self._guard = TriggerGuard(table.name, table.trigger_state, table.mend_triggers)
        self._choice, self._scan = ScanChoice(table), WorkerScan(table)
        self._size = BatchSize.for_dialect(table.dialect, batch_changes)
        self._increments = Increments(table)
        self._folding = IndexFolding(table)
        self._faults = BatchFaults(table.dialect.translate_error)
        self._batches = ChangeBatches(table, self._size, self._increments, self._faults)
        self._broken_rows = BrokenRows(table, self._batches, self._faults)

    @property
    def gap_seconds(self) -> float:
        """How long to leave the database to others after the last batch."""
        return self._pace.gap_after(self._batches.locked_seconds)

    def step(self) -> Batch | None:
        """Handle one batch of changes, or scan; None where no change waits, or another scan is running.

        Raises:
            DedupError: the database refuses; a later step may succeed if the error is transient.
        """
        with self._translate_driver_errors():
            return self._step()

    def is_drained(self) -> bool:
        """Return whether the queue is empty and no scan is required; raises DedupError like `step`."""
        with self._translate_driver_errors(), self._table.engine.connect() as connection:
            stored = self._table.read(connection)
            if self._choice.requires_scan(connection, stored):
                return False  # another scan is running, and may have begun before the table was attached
            return changes.count_waiting(connection, self._table.tables, stored.id, at_most=1) == 0

    def forget(self) -> None:
        """Prepare again at the next step."""
        self._increments.forget()

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """Return a driver's error in the words of its dialect."""
        return self._table.dialect.translate_error(error)

    def _step(self) -> Batch | None:
        with self._table.engine.connect() as connection:
            stored = self._table.read(connection)
            task = self._choice.choose(connection, stored, self._size.rate)
        if self._guard.mends(stored):
            return self._step()  # a scan finds what changed before the triggers were mended
        if task is Task.NOTHING:
            return None
        if task is Task.REQUIRED_SCAN:
            return self._run_scan()
        if task is Task.OPTIONAL_SCAN and (scanned := self._run_optional_scan()) is not None:
            return scanned
        self._increments.make_ready(stored)
        return self._handle_batch()

    def _run_scan(self) -> Batch | None:
        self._increments.drop_index()
        return self._scan.run()

    def _run_optional_scan(self) -> Batch | None:
        """Scan instead of handling batches; None where the scan fails, so that batches go on."""
        try:
            return self._run_scan()
        except DedupError as error:
            if error.is_transient or isinstance(error, StoppedError):
                raise
            logger.warning("the scan of %s failed: %s", self.name, error)
            self._choice.may_prefer_scan = False
            return None

    @collecting_seldom()
    def _handle_batch(self) -> Batch | None:
        """Handle a batch; half of it where it fails, and row by row where few rows are left."""
        at_most: int | None = None
        while True:
            try:
                batch = self._batches.handle(at_most=at_most)
            except Exception as error:
                taken = self._batches.taken
                if not self._faults.are_of_changes(error, taken):
                    raise
                logger.info("a batch of %s failed: %s", self.name, type(error).__name__)
                if len(taken) <= (_TRIED_ONE_BY_ONE if is_of_a_row(error) else 1):
                    return self._broken_rows.handle_one_by_one(taken)
                if is_of_a_row(error):
                    at_most = len(taken) // 2  # the next batches are of the former size again
                else:
                    self._size.halve(len(taken))
                time.sleep(self.gap_seconds)
            else:
                self._faults.reset()
                count = 0 if batch is None else batch.changes
                self._choice.frames.note_changes(count)
                self._folding.note_changes(count)
                return batch

    @contextmanager
    def _translate_driver_errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, MemoryError) as error:
            raise translate_driver_error(error, self.translate_error) from error
        except DedupError:
            raise
        except Exception as error:  # its message may show a text
            raise DedupError(
                "the worker of {table!r} failed with {error_type}",
                table=self.name,
                error_type=type(error).__name__,
            ) from error
