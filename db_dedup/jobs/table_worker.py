"""The changes of one table, batch after batch.

A batch is one transaction: the changes leave the queue and their result is written, or neither. It begins by
locking the table's row among the watched tables, so that there is one matcher of a table at a time, whoever
starts how many workers; the lock ends with the transaction, also if the process dies.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.engines.embedded.increment import Increment
from db_dedup.engines.embedded.readiness import make_ready
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.errors import (
    DedupError,
    NotScannedError,
    ScanRunningError,
    StatementEndedError,
    TooMuchAtOnceError,
)
from db_dedup.flow.fingerprint_index import FingerprintIndex
from db_dedup.jobs.batch_size import BatchSize
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.ended_scans import EndedScans
from db_dedup.jobs.pieces import pace_of
from db_dedup.jobs.trigger_guard import TriggerGuard
from db_dedup.jobs.worker_table import Batch, WorkerTable
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
_ONE_WRITER_FIRST_BATCH: Final = 20
# The texts of a batch are in memory together, and their features take some ten times as much.
_CHARACTERS_A_BATCH: Final = 8_000_000


class TableWorker:
    """Handles the changes of one table.

    Attributes:
        gap_seconds: how long others are to have the database between two batches.
    """

    def __init__(self, table: WorkerTable, batch_changes: int = BATCH_CHANGES) -> None:
        """Prepare; nothing is asked of the database yet."""
        self.name = table.name
        self._table = table
        self._engine, self._dialect, self._tables = table.engine, table.dialect, table.tables
        self._guard = TriggerGuard(table.name, table.trigger_state, table.mend_triggers)
        self._stored: StoredTable | None = None
        self._increment: Increment | None = None
        self._index_version = -1
        one_writer = table.dialect.capabilities.one_writer
        pace = pace_of(table.dialect)
        self._size = BatchSize(batch_changes, pace.seconds, _ONE_WRITER_FIRST_BATCH if one_writer else None)
        self.gap_seconds = pace.gap_seconds
        self._may_prefer_scan = True
        self._may_remember = True
        self._taken: Sequence[Change] = ()
        self._ended_batches, self._ended_scans = 0, EndedScans(self.name)
        self._attempts: Counter[str] = Counter()

    def step(self) -> Batch | None:
        """Handle one batch of changes; None where there is none, or a scan is at work.

        Raises:
            DedupError: the database does not let us; a transient one may pass.
        """
        with self._errors_told():
            return self._step()

    def _step(self) -> Batch | None:
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            last = scans.last_finished(connection, self._tables, stored.id)
            must_scan = self._must_scan(stored, last)
            waiting = 0 if must_scan else self._count_waiting(connection, stored, at_most=1)
            prefers_scan = bool(waiting) and self._prefers_scan(connection, stored, last)
        if self._guard.mends(stored):
            return self._step()  # what changed before is found by a scan
        if must_scan:
            return self._scan()
        # Without a look first, an idle worker would lock and write all day.
        if not waiting:
            return None
        if prefers_scan and (scanned := self._scan_instead()) is not None:
            return scanned
        self._make_ready(stored)
        return self._handle_or_less()

    def is_drained(self) -> bool:
        """Nothing waits in the queue; DedupError as of `step`."""
        with self._errors_told(), self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return self._count_waiting(connection, stored, at_most=1) == 0

    def forget(self) -> None:
        """Prepare anew at the next step."""
        self._stored = self._increment = None

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        """A driver's error in the database's own words."""
        return self._dialect.translate_error(error)

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, MemoryError) as error:
            raise self._told(error) from error

    # A batch

    def _handle_or_less(self) -> Batch | None:
        """Handle a batch; half of it where it is too much, and row by row where a row may be the fault."""
        while True:
            try:
                batch = self._handle()
            except Exception as error:
                if not self._is_of_the_batch(error):
                    raise
                logger.info("a batch of %s failed: %s", self.name, type(error).__name__)
                if is_of_a_row(error):
                    return self._one_by_one(self._waiting_keys())
                if len(self._taken) == 1:
                    return self._one_by_one([self._taken[0].row_key])
                self._size.halve(len(self._taken))
            else:
                self._ended_batches = 0
                return batch

    def _is_of_the_batch(self, error: Exception) -> bool:
        """Whether the changes that were taken last are the cause of an error, rather than the database."""
        if is_of_a_row(error):
            return True
        if not self._taken:
            return False
        told = self._told(error)
        if isinstance(told, TooMuchAtOnceError):
            self._may_remember = False
            return True
        # The server may restart for a reason of its own; hardly so often during the same changes.
        self._ended_batches += isinstance(told, StatementEndedError)
        return isinstance(told, StatementEndedError) and self._ended_batches >= _ATTEMPTS

    def _told(self, error: Exception) -> Exception:
        """The error as one of ours, if it is one of the driver or of the memory."""
        if isinstance(error, MemoryError):
            return TooMuchAtOnceError("not enough memory")
        return self.translate_error(error) if isinstance(error, SQLAlchemyError) else error

    def _handle(self, row_key: str | None = None) -> Batch | None:
        """Handle the oldest changes, or those of one row; None where there are none.

        Args:
            row_key: only changes of this row, all of them.
        """
        started = time.monotonic()
        self._taken = ()
        try:
            with self._dialect.write_transaction(self._engine) as connection:
                found, scanner = watched_tables.lock_table(connection, self._tables, self.name)
                stored = self._require(found)
                if scanner is not None:
                    return None
                taken = self._taken = self._take(connection, stored, row_key)
                if not taken:
                    return None
                dead = self._apply(connection, stored, taken)
                watched_tables.count_answer(connection, self._tables, stored.id)
        except BaseException:
            self._forget_memory()
            raise
        self._index_version = stored.answer_version + 1
        batch = Batch(self.name, len(taken), dead, time.monotonic() - started)
        self._measure(batch)
        return batch

    def _take(self, connection: Connection, stored: StoredTable, row_key: str | None) -> list[Change]:
        limit = self._size.limit if row_key is not None else self._size.ask(self._rows_that_fit())
        return changes.take_changes(connection, self._dialect, self._tables, stored.id, limit, row_key)

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
        latest = {change.row_key: change.operation for change in of_rows}
        written = {key for key, last in latest.items() if last in (changes.INSERTED, changes.UPDATED)}
        stale = increment.apply(connection, keys, utc_now(), again, written)
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
        if last is None or not self._may_remember:
            return False
        look_ups = int(last.rows * _LOAD_PER_LOOK_UP)
        return wanted + self._count_waiting(connection, stored, at_most=look_ups + 1) > look_ups

    def _forget_memory(self) -> None:
        """After a rollback the index is ahead of the database."""
        if self._increment is not None:
            self._increment.index = None

    def _rows_that_fit(self) -> int:
        """How many rows of the table may be in memory together."""
        if self._increment is None:
            return 1
        return self._increment.source.rows_within(_CHARACTERS_A_BATCH)

    def _count_waiting(self, connection: Connection, stored: StoredTable, at_most: int) -> int:
        return changes.count_waiting(connection, self._tables, stored.id, at_most=at_most)

    def _measure(self, batch: Batch) -> None:
        self._size.learn(batch.changes, batch.seconds)

    # Broken rows

    def _one_by_one(self, row_keys: Sequence[str]) -> Batch:
        """Each row in a transaction of its own; those that fail are tried again later, then parked."""
        started, handled, dead = time.monotonic(), 0, 0
        while row_keys:
            failed = []
            for row_key in row_keys:
                try:
                    batch = self._handle(row_key)
                except Exception as error:
                    if not self._is_of_the_batch(error):
                        raise
                    self._attempts[row_key] += 1
                    if self._attempts[row_key] < _ATTEMPTS:
                        failed.append(row_key)
                        continue
                    given_up = self._park(row_key, error)
                    handled, dead = handled + given_up, dead + bool(given_up)
                else:
                    handled += batch.changes if batch else 0
                    dead += batch.dead if batch else 0
                self._attempts.pop(row_key, None)
            if failed:
                time.sleep(_FIRST_PAUSE_SECONDS * 2 ** self._attempts[failed[0]])
            row_keys = failed
        return Batch(self.name, handled, dead, time.monotonic() - started)

    def _waiting_keys(self) -> list[str]:
        with self._engine.connect() as connection:
            stored = self._require(watched_tables.find_table(connection, self._tables, self.name))
            return changes.waiting_keys(connection, self._tables, stored.id, self._size.limit)

    def _park(self, row_key: str, error: Exception) -> int:
        """Give up the changes of a row with which it failed; one that mends the row meanwhile stays in the
        queue. Gives how many they were.

        In a transaction of its own: the error may have ended that of the batch.
        """
        told = self._told(error)
        reason = str(told) if isinstance(told, DedupError) else type(told).__name__
        with self._dialect.write_transaction(self._engine) as connection:
            found, scanner = watched_tables.lock_table(connection, self._tables, self.name)
            stored = self._require(found)
            taken = self._take(connection, stored, row_key) if scanner is None else []
            given_up, later = taken[: len(self._taken)], taken[len(self._taken) :]
            if given_up:
                logger.warning("a change of %s is parked: %s", self.name, reason)
                changes.park(connection, self._tables, stored.id, given_up[-1], _ATTEMPTS, reason)
                changes.append_changes(connection, self._dialect, self._tables, stored.id, later)
        return len(given_up)

    # Scans

    def _must_scan(self, stored: StoredTable, last: FinishedScan | None) -> bool:
        """Unless a scan has begun since the triggers were made, what changed before them is not known."""
        if stored.attached_at is None:
            raise NotScannedError(f"{self.name!r} has no triggers: run `db-dedup attach {self.name}` first")
        return last is None or stored.recipe is None or last.started_at < stored.attached_at

    def _prefers_scan(self, connection: Connection, stored: StoredTable, last: FinishedScan | None) -> bool:
        """Whether a scan takes less time than what has been queued since the last one."""
        if last is None or not self._size.rate or not self._may_prefer_scan:
            return False
        break_even = max(_WORTH_COMPARING_WITH_A_SCAN, int(self._size.rate * last.seconds))
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
        except DedupError as error:
            raise self._ended_scans.judged(error) from error
        self._ended_scans.reset()
        logger.info("%s was scanned", self.name, extra={"table": self.name, "pairs": report.pairs})
        return Batch(self.name, 0, 0, time.monotonic() - started, is_scan=True)

    def _require(self, stored: StoredTable | None) -> StoredTable:
        """What is stored, made by this version of the program: another one's rows cannot be compared."""
        if stored is None:
            raise NotScannedError(f"{self.name!r} is not watched: run `db-dedup attach {self.name}` first")
        return stored.require_current()


def _since(last: FinishedScan, stored: StoredTable) -> datetime:
    return max(last.started_at, stored.attached_at or last.started_at)
