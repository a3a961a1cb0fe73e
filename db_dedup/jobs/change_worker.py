"""Incremental processing: take changes out of the queue and keep the answer right, batch after batch.

A batch is one transaction: the changes leave the queue and their result is written, or neither. It begins by
locking the table's row among the watched tables, so that there is one matcher of a table at a time, whoever
starts how many workers; the lock ends with the transaction, also if the process dies.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.engines.embedded.increment import Increment
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.errors import DatabaseError, DedupError, NotScannedError, ScanRunningError
from db_dedup.flow.fingerprint_index import FingerprintIndex
from db_dedup.jobs.context import JobContext
from db_dedup.records import ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import Change
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

BATCH_CHANGES: Final = 500
_ATTEMPTS: Final = 3
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 30.0
_WORTH_COMPARING_WITH_A_SCAN: Final = 5_000
# Reading a fingerprint into memory costs this share of looking one up in the database.
_LOAD_PER_LOOK_UP: Final = 1 / 2_500

MakeContext = Callable[[Connection, StoredTable], JobContext]


@dataclass(frozen=True)
class Batch:
    """What a worker did in one transaction.

    Attributes:
        changes: taken out of the queue.
        dead: of these, parked.
        seconds: it took.
    """

    table: str
    changes: int
    dead: int
    seconds: float


@dataclass(frozen=True)
class WorkerTable:
    """A table for the worker.

    Attributes:
        make_context: what a job works with, by the settings as they are stored.
        scan: a full scan of the table.
    """

    name: str
    engine: Engine
    dialect: Dialect
    tables: Tables
    make_context: MakeContext
    scan: Callable[[], ScanReport]


class TableWorker:
    """Handles the changes of one table."""

    def __init__(self, table: WorkerTable, batch_changes: int = BATCH_CHANGES) -> None:
        """Prepare; nothing is asked of the database yet."""
        self.name = table.name
        self._table, self._limit = table, batch_changes
        self._engine, self._dialect, self._tables = table.engine, table.dialect, table.tables
        self._stored: StoredTable | None = None
        self._increment: Increment | None = None
        self._index_version = -1
        self._rate = 0.0

    def step(self) -> Batch | None:
        """Handle one batch of changes; None where there is none, or a scan is at work.

        Raises:
            DedupError: the database does not let us; a transient one may pass.
        """
        if self._scan_is_due():
            return self._scan()
        try:
            return self._handle()
        except Exception as error:
            self._forget_memory()
            if not is_of_a_row(error):
                raise
            logger.info("a batch of %s failed: %s; one by one now", self.name, type(error).__name__)
            return self._one_by_one()

    def is_drained(self) -> bool:
        """Nothing waits in the queue."""
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return changes.count_waiting(connection, self._tables, stored.id) == 0

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """A driver's error in the database's own words."""
        return self._dialect.translate_error(error)

    # A batch

    def _handle(self, row_key: str | None = None) -> Batch | None:
        started = time.monotonic()
        with self._dialect.write_transaction(self._engine) as connection:
            found, scanner = watched_tables.lock_table(connection, self._tables, self.name)
            stored = self._require(found)
            if scanner is not None:
                return None
            taken = changes.take_changes(
                connection, self._dialect, self._tables, stored.id, self._limit, row_key
            )
            if not taken:
                return None
            dead = self._apply(connection, stored, taken)
        self._index_version += 1
        batch = Batch(self.name, len(taken), dead, time.monotonic() - started)
        self._measure(batch)
        return batch

    def _apply(self, connection: Connection, stored: StoredTable, taken: Sequence[Change]) -> int:
        """Make the answer right for these changes; gives how many of them were parked."""
        increment = self._prepared(connection, stored, len(taken))
        unusable = [change for change in taken if change.operation == changes.KEY_TOO_LONG]
        for change in unusable:
            error = "the row's key is longer than a key can be"
            changes.park(connection, self._tables, stored.id, change, 1, error)
        if any(change.operation == changes.TRUNCATED for change in taken):
            changes.append_stored_rows(connection, increment.store)
        keys = [c.row_key for c in taken if c.operation not in (changes.KEY_TOO_LONG, changes.TRUNCATED)]
        stale = increment.apply(connection, keys, utc_now())
        again = (Change(key, changes.UPDATED) for key in sorted(stale.difference(keys)))
        changes.append_changes(connection, self._dialect, self._tables, stored.id, again)
        changes.forget_dead(connection, self._tables, stored.id, keys)
        watched_tables.count_answer(connection, self._tables, stored.id)
        return len(unusable)

    def _prepared(self, connection: Connection, stored: StoredTable, wanted: int) -> Increment:
        """The increment for the settings and the answer as they are now."""
        increment = self._increment
        is_same = self._stored is not None and (self._stored.watched, self._stored.recipe) == (
            stored.watched,
            stored.recipe,
        )
        if increment is None or not is_same:
            context = self._table.make_context(connection, stored)
            store = FingerprintStore(self._dialect, self._tables, stored.id, stored.recipe or 0)
            fingerprinter = Fingerprinter(context.watched)
            increment = self._increment = Increment(context.watched, store, context.source, fingerprinter)
        self._stored = stored
        if self._index_version != stored.answer_version:
            increment.index = None
            self._index_version = stored.answer_version
        if increment.index is None and self._memory_is_worth(connection, stored, wanted):
            increment.index = FingerprintIndex(*increment.store.read_heads(connection))
        return increment

    def _memory_is_worth(self, connection: Connection, stored: StoredTable, wanted: int) -> bool:
        last = scans.last_finished(connection, self._tables, stored.id)
        waiting = wanted + changes.count_waiting(connection, self._tables, stored.id)
        return last is not None and waiting > last.rows * _LOAD_PER_LOOK_UP

    def _forget_memory(self) -> None:
        """After a rollback the index is ahead of the database."""
        if self._increment is not None:
            self._increment.index = None

    # Broken rows

    def _one_by_one(self) -> Batch:
        """Each row in a transaction of its own; one that fails is tried again, then parked."""
        started, handled, dead = time.monotonic(), 0, 0
        for row_key in self._waiting_keys():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    batch = self._handle(row_key)
                except Exception as error:
                    self._forget_memory()
                    if not is_of_a_row(error):
                        raise
                    if attempt == _ATTEMPTS:
                        self._park(row_key, error)
                        dead += 1
                    time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt if attempt < _ATTEMPTS else 0)
                else:
                    handled += batch.changes if batch else 0
                    break
        return Batch(self.name, handled + dead, dead, time.monotonic() - started)

    def _waiting_keys(self) -> list[str]:
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return changes.waiting_keys(connection, self._tables, stored.id, self._limit)

    def _park(self, row_key: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, DedupError) else type(error).__name__
        logger.warning("a change of %s is parked: %s", self.name, reason)
        with self._dialect.write_transaction(self._engine) as connection:
            found, _ = watched_tables.lock_table(connection, self._tables, self.name)
            table_id = self._require(found).id
            taken = changes.take_changes(
                connection, self._dialect, self._tables, table_id, self._limit, row_key
            )
            for change in taken[-1:]:
                changes.park(connection, self._tables, table_id, change, _ATTEMPTS, reason)

    # Scans

    def _scan_is_due(self) -> bool:
        """Unless a scan has begun since the triggers were made, what changed before them is not known; and a
        queue that takes longer than a scan is better scanned."""
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            if stored.attached_at is None:
                raise NotScannedError(
                    f"{self.name!r} has no triggers: run `db-dedup attach {self.name}` first"
                )
            last = scans.last_finished(connection, self._tables, stored.id)
            if last is None or last.started_at < stored.attached_at:
                return True
            if not self._rate:
                return False
            since = max(last.started_at, stored.attached_at)
            waiting = changes.count_waiting(connection, self._tables, stored.id, since)
        return waiting > _WORTH_COMPARING_WITH_A_SCAN and waiting / self._rate > last.seconds

    def _scan(self) -> Batch | None:
        started = time.monotonic()
        self._forget_memory()
        try:
            report = self._table.scan()
        except ScanRunningError:
            return None
        logger.info("%s was scanned", self.name, extra={"table": self.name, "pairs": report.pairs})
        return Batch(self.name, 0, 0, time.monotonic() - started)

    def _measure(self, batch: Batch) -> None:
        """Changes a second, the latest batches counting most."""
        rate = batch.changes / max(batch.seconds, 1e-6)
        if batch.changes >= self._limit:
            self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate

    def _require(self, stored: StoredTable | None) -> StoredTable:
        if stored is None:
            raise NotScannedError(f"{self.name!r} is not watched: run `db-dedup attach {self.name}` first")
        return stored


class ChangeWorker:
    """Handles the changes of several tables in turn."""

    def __init__(
        self,
        tables: Sequence[TableWorker],
        poll_seconds: float = 0.5,
        on_batch: Callable[[Batch], None] = lambda _: None,
    ) -> None:
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
        return is_busy

    def _told(self, error: Exception) -> DedupError:
        if isinstance(error, SQLAlchemyError):
            return self._tables[0].translate_error(error)
        assert isinstance(error, DedupError)  # noqa: S101 - nothing else is caught
        return error


def is_of_a_row(error: Exception) -> bool:
    """Whether a row may be the cause, rather than the database or the settings: then others can go on."""
    if isinstance(error, DedupError):
        return not isinstance(error, DatabaseError) and not error.is_transient
    if isinstance(error, SQLAlchemyError):
        return isinstance(error, DataError | IntegrityError)
    return isinstance(error, ValueError | ArithmeticError | LookupError | TypeError | AssertionError)
