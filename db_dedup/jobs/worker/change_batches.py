"""One batch of changes: a transaction that takes them out of the queue and writes their result."""

import logging
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from db_dedup.engines.base import Increment
from db_dedup.jobs.worker.batch_faults import BatchFaults
from db_dedup.jobs.worker.batch_size import BatchSize
from db_dedup.jobs.worker.increments import Increments
from db_dedup.jobs.worker.worker_table import Batch, WorkerTable
from db_dedup.store import changes, watched_tables
from db_dedup.store.changes import Change
from db_dedup.store.clock import utc_now
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)


class _Ahead(NamedTuple):
    """How many of the oldest changes have been matched ahead, and how long that took for each."""

    changes: int
    seconds_each: float


_NOTHING: Final = _Ahead(0, 0.0)


class ChangeBatches:
    """Handles batches of the changes of one table.

    Attributes:
        taken: the changes that the last batch took, also if it was rolled back.
        locked_seconds: how long the last batch kept others out.
    """

    def __init__(
        self, table: WorkerTable, size: BatchSize, increments: Increments, faults: BatchFaults
    ) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table, self._size, self._increments, self._faults = table, size, increments, faults
        self.taken: Sequence[Change] = ()
        self.locked_seconds = 0.0
        self._ahead = _NOTHING

    def handle(self, row_key: str | None = None, at_most: int | None = None) -> Batch | None:
        """Handle the oldest changes, or those of one row; None where there are none, or a scan is running.

        Args:
            row_key: only changes of this row, all of them.
            at_most: no more of the oldest changes than so many, since one of more has failed.
        """
        started = time.monotonic()
        self.taken = ()
        limit, ahead = self._size.limit, self._ahead
        self._ahead = _NOTHING
        if row_key is None:
            ahead = ahead if ahead.changes else self._prepare(at_most)
            if not ahead.changes:
                return None
            limit = self._size.ask(ahead.changes)
        locked = time.monotonic()
        try:
            with self._table.dialect.write_transaction(self._table.engine) as connection:
                locked = time.monotonic()
                stored, is_scanned = self._table.lock(connection)
                if is_scanned:
                    return None
                self.taken = self._take(connection, stored, limit, row_key)
                if not self.taken:
                    return None
                dead = self._apply(connection, stored, self.taken)
                watched_tables.bump_answer_version(connection, self._table.tables, stored.id)
        except BaseException:
            self._increments.drop_index()
            raise
        finally:
            self.locked_seconds = time.monotonic() - locked
        self._increments.note_commit(stored)
        batch = Batch(self._table.name, len(self.taken), dead, time.monotonic() - started)
        seconds = self.locked_seconds + batch.changes * ahead.seconds_each
        self._size.learn(batch.changes, seconds, self.locked_seconds)
        if row_key is None:
            self._ahead = ahead._replace(changes=max(0, ahead.changes - batch.changes))
        return batch

    def _prepare(self, at_most: int | None) -> "_Ahead":
        """Match the oldest changes before the table is locked, unless a scan is running.

        An error is left to the transaction: it meets it again, with the changes that it is the error of.
        """
        started, limit = time.monotonic(), self._size.ahead(self._increments.source)
        limit = limit if at_most is None else min(limit, at_most)
        with self._table.dialect.short_reads(self._table.engine) as connection:
            stored = self._table.read(connection)
            if watched_tables.lease_holder(connection, self._table.tables, self._table.name) is not None:
                return _NOTHING  # a scan is running, or the index is being folded: no batch may write
            waiting = changes.oldest_waiting(connection, self._table.tables, stored.id, limit)
            try:
                may_load = not self._faults.was_too_much and at_most is None  # each failure drops the index
                self._increments.prepare(connection, stored, waiting, may_load=may_load)
            except Exception as error:
                connection.rollback()  # in PostgreSQL no other statement is possible before
                logger.info("matching ahead of %s failed: %s", self._table.name, type(error).__name__)
                self._increments.drop_index()
        return _Ahead(len(waiting), (time.monotonic() - started) / max(1, len(waiting)))

    def take(self, connection: Connection, stored: StoredTable, row_key: str) -> list[Change]:
        """Take the changes of one row out of the queue in this transaction."""
        return self._take(connection, stored, self._size.limit, row_key)

    def _take(
        self, connection: Connection, stored: StoredTable, limit: int, row_key: str | None
    ) -> list[Change]:
        table = self._table
        return changes.take_changes(connection, table.dialect, table.tables, stored.id, limit, row_key)

    def _apply(self, connection: Connection, stored: StoredTable, taken: Sequence[Change]) -> int:
        # An index is loaded before the lock is taken, if at all.
        increment = self._increments.current(connection, stored, len(taken), may_load=False)
        return apply_changes(connection, increment, taken)


def apply_changes(connection: Connection, increment: Increment, taken: Sequence[Change]) -> int:
    """Make the answer right for these changes; return how many of them were parked.

    Args:
        connection: in the transaction that took them.
        increment: for the settings and the answer as they are stored.
        taken: in the order of the queue.
    """
    dialect, tables, table_id = increment.store.dialect, increment.store.tables, increment.store.table_id
    faulty = [(change, fault) for change in taken if (fault := change.fault)]
    for change, fault in faulty:
        changes.park(connection, tables, table_id, change, 1, fault)
    if any(change.operation == changes.TRUNCATED for change in taken):
        changes.append_stored_rows(connection, increment.store)
    of_rows = [c for c in taken if c.names_a_row]
    keys = {change.row_key for change in of_rows}
    again, written = changes.searched_again(of_rows), changes.written(of_rows)
    stale = increment.apply(connection, keys, utc_now(), again, written)
    changes.forget_dead(connection, dialect, tables, table_id, sorted(keys))
    # The pairs of a row that is still parked are searched when it is retried or changes.
    for known in (changes.written_among, changes.parked_among):
        stale -= known(connection, tables, table_id, dialect, sorted(stale))
    left_out = (Change(key, changes.SEARCH_AGAIN) for key in sorted(stale))
    changes.append_changes(connection, dialect, tables, table_id, left_out)
    return len(faulty)
