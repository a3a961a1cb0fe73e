"""The changes of one table, batch after batch.

A batch is one transaction: the changes leave the queue and their result is written, or neither. It begins by
locking the table's row among the watched tables, so that there is one matcher of a table at a time, whoever
starts how many workers; the lock ends with the transaction, also if the process dies.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.engines.embedded.increment import Increment
from db_dedup.engines.embedded.readiness import make_ready
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.errors import DedupError, NotScannedError, ScanRunningError
from db_dedup.flow.fingerprint_index import FingerprintIndex
from db_dedup.jobs.context import JobContext
from db_dedup.records import ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import Change
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.row_faults import is_of_a_row
from db_dedup.store.scans import FinishedScan
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

BATCH_CHANGES: Final = 2_000
_ATTEMPTS: Final = 3
_FIRST_PAUSE_SECONDS: Final = 0.1
_WORTH_COMPARING_WITH_A_SCAN: Final = 5_000
# Reading a fingerprint into memory costs this share of looking one up in the database.
_LOAD_PER_LOOK_UP: Final = 1 / 2_500
# An exact check waits as long as a batch takes; where there is one writer at a time, everybody who writes.
_SECONDS_A_BATCH: Final = 1.0
_ONE_WRITER_SECONDS: Final = 0.25
_ONE_WRITER_FIRST_BATCH: Final = 20
# Whoever waits for SQLite's lock looks for it every tenth of a second: a shorter gap may never be seen.
_ONE_WRITER_GAP_SECONDS: Final = 0.11

MakeContext = Callable[[Connection, StoredTable], JobContext]


@dataclass(frozen=True)
class Batch:
    """What a worker did in one transaction, or in one scan.

    Attributes:
        changes: taken out of the queue.
        dead: rows whose changes were given up.
        seconds: it took.
        is_scan: the whole table was scanned.
    """

    table: str
    changes: int
    dead: int
    seconds: float
    is_scan: bool = False


@dataclass(frozen=True)
class WorkerTable:
    """A table for the worker.

    Attributes:
        make_context: what a job works with, by the settings as they are stored.
        scan: a full scan of the table by these settings.
    """

    name: str
    engine: Engine
    dialect: Dialect
    tables: Tables
    make_context: MakeContext
    scan: Callable[[], ScanReport]


class TableWorker:
    """Handles the changes of one table.

    Attributes:
        gap_seconds: how long others are to have the database between two batches.
    """

    def __init__(self, table: WorkerTable, batch_changes: int = BATCH_CHANGES) -> None:
        """Prepare; nothing is asked of the database yet."""
        self.name = table.name
        self._table, self._limit = table, batch_changes
        self._engine, self._dialect, self._tables = table.engine, table.dialect, table.tables
        self._stored: StoredTable | None = None
        self._increment: Increment | None = None
        self._index_version = -1
        one_writer = table.dialect.capabilities.one_writer
        self._size = min(batch_changes, _ONE_WRITER_FIRST_BATCH) if one_writer else batch_changes
        self.gap_seconds = _ONE_WRITER_GAP_SECONDS if one_writer else 0.0
        self._rate: float | None = None
        self._may_prefer_scan = True

    def step(self) -> Batch | None:
        """Handle one batch of changes; None where there is none, or a scan is at work.

        Raises:
            DedupError: the database does not let us; a transient one may pass.
        """
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            last = scans.last_finished(connection, self._tables, stored.id)
            must_scan = self._must_scan(stored, last)
            waiting = 0 if must_scan else self._count_waiting(connection, stored, at_most=1)
            prefers_scan = bool(waiting) and self._prefers_scan(connection, stored, last)
        if must_scan:
            return self._scan()
        # Without a look first, an idle worker would lock and write all day.
        if not waiting:
            return None
        if prefers_scan and (scanned := self._scan_instead()) is not None:
            return scanned
        self._make_ready(stored)
        try:
            return self._handle()
        except Exception as error:
            if not is_of_a_row(error):
                raise
            logger.info("a batch of %s failed: %s; one by one now", self.name, type(error).__name__)
            return self._one_by_one()

    def is_drained(self) -> bool:
        """Nothing waits in the queue."""
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return self._count_waiting(connection, stored, at_most=1) == 0

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """A driver's error in the database's own words."""
        return self._dialect.translate_error(error)

    # A batch

    def _handle(self, row_key: str | None = None, *, gives_up: bool = False) -> Batch | None:
        """Handle the oldest changes, or those of one row; None where there are none.

        Args:
            row_key: only changes of this row.
            gives_up: where they cannot be handled, park them.
        """
        started = time.monotonic()
        try:
            with self._dialect.write_transaction(self._engine) as connection:
                found, scanner = watched_tables.lock_table(connection, self._tables, self.name)
                stored = self._require(found)
                if scanner is not None:
                    return None
                taken = changes.take_changes(
                    connection, self._dialect, self._tables, stored.id, self._size, row_key
                )
                if not taken:
                    return None
                dead = (self._apply_or_park if gives_up else self._apply)(connection, stored, taken)
                watched_tables.count_answer(connection, self._tables, stored.id)
        except BaseException:
            self._forget_memory()
            raise
        self._index_version = stored.answer_version + 1
        batch = Batch(self.name, len(taken), dead, time.monotonic() - started)
        self._measure(batch)
        return batch

    def _apply(self, connection: Connection, stored: StoredTable, taken: Sequence[Change]) -> int:
        """Make the answer right for these changes; gives how many of them were parked."""
        increment = self._prepared(connection, stored, len(taken))
        faulty = [(change, fault) for change in taken if (fault := change.fault)]
        for change, fault in faulty:
            changes.park(connection, self._tables, stored.id, change, 1, fault)
        if any(change.operation == changes.TRUNCATED for change in taken):
            changes.append_stored_rows(connection, increment.store)
        of_rows = [c for c in taken if not c.fault and c.operation != changes.TRUNCATED]
        keys = {change.row_key for change in of_rows}
        again = {change.row_key for change in of_rows if change.operation == changes.SEARCH_AGAIN}
        stale = increment.apply(connection, keys, utc_now(), again)
        left_out = (Change(key, changes.SEARCH_AGAIN) for key in sorted(stale))
        changes.append_changes(connection, self._dialect, self._tables, stored.id, left_out)
        changes.forget_dead(connection, self._dialect, self._tables, stored.id, sorted(keys))
        return len(faulty)

    def _prepared(self, connection: Connection, stored: StoredTable, wanted: int) -> Increment:
        """The increment for the settings and the answer as they are now."""
        increment = self._increment
        if increment is None or not self._is_for(stored):
            increment = self._increment = self._made(self._table.make_context(connection, stored), stored)
        self._stored = stored
        if self._index_version != stored.answer_version:
            increment.index = None
        if increment.index is None and self._memory_is_worth(connection, stored, wanted):
            increment.index = FingerprintIndex(*increment.store.read_heads(connection))
        return increment

    def _make_ready(self, stored: StoredTable) -> None:
        """Load and compile what a batch needs, while nobody has to wait for it."""
        if self._is_for(stored):
            return
        with self._engine.connect() as connection:
            context = self._table.make_context(connection, stored)
        self._increment, self._stored = self._made(context, stored), stored
        make_ready(context.watched, self._increment.fingerprinter)

    def _is_for(self, stored: StoredTable) -> bool:
        """Whether the increment that there is was made for these settings."""
        made_for = self._stored
        return made_for is not None and (made_for.watched, made_for.recipe) == (stored.watched, stored.recipe)

    def _made(self, context: JobContext, stored: StoredTable) -> Increment:
        store = FingerprintStore(self._dialect, self._tables, stored.id, stored.recipe or 0)
        return Increment(context.watched, store, context.source, Fingerprinter(context.watched))

    def _memory_is_worth(self, connection: Connection, stored: StoredTable, wanted: int) -> bool:
        last = scans.last_finished(connection, self._tables, stored.id)
        if last is None:
            return False
        look_ups = int(last.rows * _LOAD_PER_LOOK_UP)
        return wanted + self._count_waiting(connection, stored, at_most=look_ups + 1) > look_ups

    def _forget_memory(self) -> None:
        """After a rollback the index is ahead of the database."""
        if self._increment is not None:
            self._increment.index = None

    def _count_waiting(self, connection: Connection, stored: StoredTable, at_most: int) -> int:
        return changes.count_waiting(connection, self._tables, stored.id, at_most=at_most)

    # How much at a time

    def _measure(self, batch: Batch) -> None:
        """Learn from a full batch how many changes to take, and how many a second there are, the latest
        counting most. The first one says nothing of the rate: much is loaded in it."""
        if batch.changes < self._size:
            return
        seconds = max(batch.seconds, 1e-6)
        one_writer = self._dialect.capabilities.one_writer
        wanted = _ONE_WRITER_SECONDS if one_writer else _SECONDS_A_BATCH
        factor = min(max(wanted / seconds, 1 / 4), 4)
        self._size = max(1, min(self._limit, int(self._size * factor)))
        rate = batch.changes / seconds
        if self._rate is None:
            self._rate = 0.0
        else:
            self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate

    # Broken rows

    def _one_by_one(self) -> Batch:
        """Each row in a transaction of its own; those that fail are tried again later, then parked."""
        started, handled, dead = time.monotonic(), 0, 0
        row_keys = self._waiting_keys()
        for attempt in range(1, _ATTEMPTS + 1):
            failed = []
            for row_key in row_keys:
                try:
                    batch = self._handle(row_key, gives_up=attempt == _ATTEMPTS)
                except Exception as error:
                    if not is_of_a_row(error):
                        raise
                    failed.append(row_key)
                else:
                    handled += batch.changes if batch else 0
                    dead += batch.dead if batch else 0
            row_keys = failed
            if not row_keys:
                break
            time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt if attempt < _ATTEMPTS else 0)
        return Batch(self.name, handled, dead, time.monotonic() - started)

    def _waiting_keys(self) -> list[str]:
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return changes.waiting_keys(connection, self._tables, stored.id, self._limit)

    def _apply_or_park(self, connection: Connection, stored: StoredTable, taken: Sequence[Change]) -> int:
        """As `_apply`; changes of a row that fail are parked in the transaction that took them: one that
        mends the row meanwhile stays in the queue."""
        try:
            with connection.begin_nested():
                return self._apply(connection, stored, taken)
        except Exception as error:
            if not is_of_a_row(error):
                raise
            self._forget_memory()
            reason = str(error) if isinstance(error, DedupError) else type(error).__name__
            logger.warning("a change of %s is parked: %s", self.name, reason)
            changes.park(connection, self._tables, stored.id, taken[-1], _ATTEMPTS, reason)
            return 1

    # Scans

    def _must_scan(self, stored: StoredTable, last: FinishedScan | None) -> bool:
        """Unless a scan has begun since the triggers were made, what changed before them is not known."""
        if stored.attached_at is None:
            raise NotScannedError(f"{self.name!r} has no triggers: run `db-dedup attach {self.name}` first")
        return last is None or stored.recipe is None or last.started_at < stored.attached_at

    def _prefers_scan(self, connection: Connection, stored: StoredTable, last: FinishedScan | None) -> bool:
        """Whether a scan takes less time than what has been queued since the last one."""
        if last is None or not self._rate or not self._may_prefer_scan:
            return False
        break_even = max(_WORTH_COMPARING_WITH_A_SCAN, int(self._rate * last.seconds))
        since = _since(last, stored)
        waiting = changes.count_waiting(connection, self._tables, stored.id, since, at_most=break_even + 1)
        if waiting <= break_even:
            return False
        logger.info("more than %d changes of %s wait: a scan is cheaper", break_even, self.name)
        return True

    def _scan_instead(self) -> Batch | None:
        """A scan that could be done without: where it fails, batches go on."""
        try:
            return self._scan()
        except DedupError as error:
            if error.is_transient:
                raise
            logger.warning("the scan of %s failed: %s", self.name, error)
            self._may_prefer_scan = False
            return None

    def _scan(self) -> Batch | None:
        started = time.monotonic()
        self._forget_memory()
        try:
            report = self._table.scan()
        except ScanRunningError:
            return None
        logger.info("%s was scanned", self.name, extra={"table": self.name, "pairs": report.pairs})
        return Batch(self.name, 0, 0, time.monotonic() - started, is_scan=True)

    def _require(self, stored: StoredTable | None) -> StoredTable:
        if stored is None:
            raise NotScannedError(f"{self.name!r} is not watched: run `db-dedup attach {self.name}` first")
        return stored


def _since(last: FinishedScan, stored: StoredTable) -> datetime:
    return max(last.started_at, stored.attached_at or last.started_at)
