"""Rows whose changes cannot be handled: tried one by one, and parked when several attempts failed."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from db_dedup.errors import DedupError
from db_dedup.flow.rows.values import is_encodable
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.worker.batch_faults import BatchFaults
from db_dedup.jobs.worker.change_batches import ChangeBatches
from db_dedup.jobs.worker.driver_errors import translate_driver_error
from db_dedup.jobs.worker.worker_table import Batch, WorkerTable
from db_dedup.store import changes
from db_dedup.store.changes import Change

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_FIRST_PAUSE_SECONDS: Final = 0.1


class BrokenRows:
    """Isolates the broken rows of one table, so that the changes of all others are handled."""

    def __init__(self, table: WorkerTable, batches: ChangeBatches, faults: BatchFaults) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table, self._batches, self._faults = table, batches, faults
        self._pace = pace_of(table.dialect)
        self._attempts: Counter[str] = Counter()

    def handle_one_by_one(self, taken: Sequence[Change]) -> Batch:
        """Handle each row in a transaction of its own; try those that fail again later, then park them.

        Args:
            taken: by the batch that failed. Of a key that is no valid text no query can take the changes:
                they are left to the next batch, which parks them.
        """
        started, handled, dead = time.monotonic(), 0, 0
        row_keys = list(dict.fromkeys(filter(is_encodable, (change.row_key for change in taken))))
        while row_keys:
            failed = []
            for row_key in row_keys:
                time.sleep(self._pace.gap_after(self._batches.locked_seconds))
                try:
                    batch = self._batches.handle(row_key)
                except Exception as error:
                    if not self._faults.are_of_changes(error, self._batches.taken):
                        raise
                    self._attempts[row_key] += 1
                    if self._attempts[row_key] < _ATTEMPTS:
                        failed.append(row_key)
                        continue
                    parked = self._park(row_key, error)
                    handled, dead = handled + parked, dead + bool(parked)
                else:
                    handled += batch.changes if batch else 0
                    dead += batch.dead if batch else 0
                self._attempts.pop(row_key, None)
            if failed:
                time.sleep(_FIRST_PAUSE_SECONDS * 2 ** self._attempts[failed[0]])
            row_keys = failed
        return Batch(self._table.name, handled, dead, time.monotonic() - started)

    def _park(self, row_key: str, error: Exception) -> int:
        """Park the changes of a row with which its last attempt failed; return how many they were.

        A change that came after that attempt may mend the row, and stays in the queue. The transaction is
        another one than that of the attempt, which the error may have ended.
        """
        count, reason = len(self._batches.taken), self._reason(error)
        dialect, tables = self._table.dialect, self._table.tables
        with dialect.write_transaction(self._table.engine) as connection:
            stored, is_scanned = self._table.lock(connection)
            taken = [] if is_scanned else self._batches.take(connection, stored, row_key)
            parked, later = taken[:count], taken[count:]
            if parked:
                logger.warning("a change of %s is parked: %s", self._table.name, reason)
                changes.park(connection, tables, stored.id, parked[-1], _ATTEMPTS, reason)
            changes.append_changes(connection, dialect, tables, stored.id, later)
        return len(parked)

    def _reason(self, error: Exception) -> str:
        translated = translate_driver_error(error, self._table.dialect.translate_error)
        return str(translated) if isinstance(translated, DedupError) else type(translated).__name__
