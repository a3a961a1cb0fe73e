"""A check that is exact under concurrency: it keeps a lock on the table until the caller's commit."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.app.checks_together import compare_together, row_keys_of
from db_dedup.app.database import Database
from db_dedup.engines.base import Lookup, QueuedRows
from db_dedup.errors import (
    ConfigError,
    InvalidArgumentError,
    NotScannedError,
    ReservationExpiredError,
    RowNotFoundError,
    TableBusyError,
    TriggerError,
)
from db_dedup.jobs.objects.attachment import AttachmentState, catalogue_differences, trigger_target
from db_dedup.records import CheckResult, Record, Reservation, RowKey
from db_dedup.store import changes, reservations, scans, watched_tables
from db_dedup.store.changes import SEARCH_AGAIN, TRUNCATED, Change
from db_dedup.store.clock import database_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.watched_tables import StoredTable

MOST_QUEUED: Final = 10_000
"""The most queued changes: to read more of them would keep the lock for too long."""
MOST_RESERVED: Final = 1_000
"""The most reservations of a table, for the same reason."""
MOST_RESERVED_BYTES: Final = 64 * 2**20
"""The most bytes of what they are compared by, which each check reads."""


class BlockingCheck:
    """Checks records of one table in the caller's transaction, and locks the table until its end."""

    def __init__(self, database: Database, name: str, find_lookup: Callable[[Connection], Lookup]) -> None:
        self._database, self._name, self._find_lookup = database, name, find_lookup

    def check(
        self,
        connection: Connection,
        records: Sequence[Record],
        row_keys: Sequence[RowKey | None],
        deleted: Sequence[RowKey] | None = None,
    ) -> list[CheckResult]:
        """Return for each record its duplicates among all committed rows and the caller's own rows.

        Args:
            connection: in a transaction of the caller's.
            records: n records; they are not compared with each other, unless `deleted` is given.
            row_keys: for each record its own row key, stored or not yet, or None. A row is never a duplicate
                of itself.
            deleted: the records are stored together, and rows of these keys are deleted with them.

        Raises:
            TableBusyError: another transaction has held the lock of the table for too long.
            NotScannedError: the table has no triggers, or has not been scanned since it was attached.
            TriggerError: its triggers miss changes.
            ConfigError: the connection is in no transaction, or in one that does not see later commits.
            RowKeyError: no row can be stored under one of the keys.
            InvalidArgumentError: one is no key of the table, or two records have the same key.
        """
        with self._locked(connection):
            stored, scanner = watched_tables.lock_table(connection, self._database.tables, self._name)
            lookup = self._find_lookup(connection)
            own_keys = _own_keys(lookup, row_keys)
            stored = self._require_followed(connection, stored)
            found = self._check(connection, stored, lookup, records, own_keys)
            if deleted is not None:
                replaced = [*own_keys, *deleted]
                found = compare_together(connection, connection, lookup, records, found, replaced)
            # A running scan would delete fingerprints of rows that it has not read.
            if scanner is None:
                checked = zip(own_keys, records, found, strict=True)
                new = {
                    key: record
                    for key, record, result in checked
                    if key is not None and not result.matches and not result.others
                }
                self._put(connection, stored, lookup, new)
        return found

    def reserve(
        self, connection: Connection, record: Record, row_key: RowKey | None, seconds: float
    ) -> Reservation | CheckResult:
        """Reserve a record that has no duplicate; else return the result of the check.

        Args:
            connection: in a transaction; the reservation counts from its commit on.
            record: to reserve.
            row_key: of the row that will be stored, if it is known.
            seconds: until the reservation expires.

        Raises:
            What `check` raises.
        """
        tables = self._database.tables
        with self._locked(connection):
            stored, _ = watched_tables.lock_table(connection, tables, self._name)
            lookup = self._find_lookup(connection)
            (own_key,) = _own_keys(lookup, [row_key])
            stored = self._require_followed(connection, stored)
            if own_key is not None and self._visible(connection, stored, [own_key]):
                raise InvalidArgumentError(
                    "row {key!r} of {name!r} is stored already: leave its key out",
                    key=own_key[:40],
                    name=self._name,
                )
            (found,) = self._check(connection, stored, lookup, [record], [own_key])
            if found.matches:
                return found
            now = database_now(connection)
            reservations.remove_expired(connection, tables, stored.id, now)
            others = self._reserved(connection, stored, now)
            size = sum(len(each.packed) for each in others)
            if len(others) >= MOST_RESERVED or size >= MOST_RESERVED_BYTES:
                raise TableBusyError(
                    "{name!r} has {count} reservations: confirm or release some",
                    name=self._name,
                    count=len(others),
                )
            reservation = Reservation(
                secrets.token_hex(16),
                now + timedelta(seconds=seconds),
                own_key,
                lookup.pack(connection, record, others),
            )
            reservations.add(connection, tables, stored.id, stored.recipe or 0, reservation)
        return reservation

    def confirm(self, connection: Connection, name: str, row_key: RowKey | None) -> None:
        """End a reservation whose row is stored.

        Raises:
            ReservationExpiredError: it has expired, or was released.
            RowNotFoundError: the row is not committed.
            InvalidArgumentError: the key of the row is not known.
        """
        tables = self._database.tables
        with self._locked(connection):
            stored, _ = watched_tables.lock_table(connection, tables, self._name)
            lookup = self._find_lookup(connection)
            stored = self._require_followed(connection, stored)
            now = database_now(connection)
            reservation = reservations.find_live(connection, tables, stored.id, name, now)
            if reservation is None:
                raise ReservationExpiredError("the reservation has expired: check the record again")
            (own_key,) = _own_keys(lookup, [reservation.row_key if row_key is None else row_key])
            if own_key is None:
                raise InvalidArgumentError("name the row key of the row that was stored")
            if not self._visible(connection, stored, [own_key]):
                raise RowNotFoundError(
                    "row {key!r} of {name!r} is not there: commit it, then confirm",
                    key=own_key[:40],
                    name=self._name,
                )
            reservations.remove(connection, tables, stored.id, name)

    def _check(
        self,
        connection: Connection,
        stored: StoredTable,
        lookup: Lookup,
        records: Sequence[Record],
        own_keys: Sequence[str | None],
    ) -> list[CheckResult]:
        """Check records against stored rows, queued ones and reservations."""
        queued = self._read_queued(connection, stored, lookup)
        reserved = self._reserved(connection, stored, database_now(connection))
        while True:
            found = lookup.check(connection, records, queued=queued, own_keys=own_keys, reserved=reserved)
            # Who writes without a check waits for none. On MariaDB and MySQL this one even waits for the end
            # of a transaction that has written one of its candidates.
            if not queued.written_since:
                return found
            again = self._read_queued(connection, stored, lookup)
            if queued.written_since.isdisjoint(again.row_keys):
                return found
            queued = again

    def _reserved(self, connection: Connection, stored: StoredTable, now: datetime) -> list[Reservation]:
        """Return the reservations that have neither expired nor become a row that others see.

        A client need not confirm what it has stored, so there may be many of these: only their keys are read.
        """
        live = reservations.list_live(connection, self._database.tables, stored.id, now)
        if any(each.recipe != stored.recipe for each in live):
            raise TableBusyError(
                "{name!r} has reservations by its former settings: try again when they have expired",
                name=self._name,
            )
        keys = sorted({each.row_key for each in live if each.row_key is not None})
        visible = self._visible(connection, stored, keys)
        names = [each.name for each in live if each.row_key not in visible]
        return reservations.read_named(connection, self._database.tables, stored.id, names)

    def _visible(self, connection: Connection, stored: StoredTable, row_keys: Sequence[str]) -> set[str]:
        """Return which rows a check finds: they are stored, or their changes are in the queue."""
        if not row_keys:
            return set()
        database = self._database
        store = FingerprintStore.serving(database.dialect, database.tables, stored)
        found = set(store.find_rows(connection, row_keys))
        found |= changes.written_among(connection, database.tables, stored.id, database.dialect, row_keys)
        return found

    @contextmanager
    def _locked(self, connection: Connection) -> Iterator[None]:
        """Lock the table's row; it stays locked until the caller's transaction ends."""
        database = self._database
        if database.is_apart:
            raise ConfigError("a check that blocks needs our tables in the database of the rows")
        lock = watched_tables.lock_table_statement(database.tables, self._name)
        with ExitStack() as stack:
            try:
                stack.enter_context(database.dialect.lock_row(connection, lock, database.tables.change))
            except SQLAlchemyError as error:
                translated = database.dialect.translate_error(error)
                if not translated.is_transient:
                    raise
                raise TableBusyError(
                    "{name!r} is not free for this check ({reason}): roll back and try again",
                    name=self._name,
                    reason=translated,
                ) from error
            yield

    def _require_followed(self, connection: Connection, stored: StoredTable | None) -> StoredTable:
        """Return the stored table if every row is stored or has its change in the queue."""
        if stored is None or stored.attached_at is None:
            raise NotScannedError(
                "{name!r} has no triggers, and a check that blocks needs them: run `db-dedup attach {name}`",
                name=self._name,
            )
        self._require_triggers(connection, stored)
        last = scans.last_finished(connection, self._database.tables, stored.id)
        if last is None or not last.is_after(stored.attached_at):
            raise NotScannedError(
                "{name!r} has not been scanned since it was attached: run `db-dedup scan {name}`",
                name=self._name,
            )
        return stored

    def _require_triggers(self, connection: Connection, stored: StoredTable) -> None:
        """Raise TriggerError if the triggers miss changes.

        Each check reads this from the catalogue, in some milliseconds, since a trigger may have been
        disabled.
        """
        database = self._database
        target = trigger_target(database.namespace, stored.id, stored.watched)
        found = catalogue_differences(connection, database.dialect, target, stored.trigger_digest)
        # If this account may not see the triggers, they count as present.
        faults = [sentence for state, sentence in found if state is not AttachmentState.UNKNOWN]
        if faults:
            raise TriggerError(
                "the triggers of {name!r} miss changes ({faults}): run `db-dedup attach {name}`",
                name=self._name,
                faults="; ".join(faults),
            )

    def _read_queued(self, connection: Connection, stored: StoredTable, lookup: Lookup) -> QueuedRows:
        waiting = changes.read_waiting(connection, self._database.tables, stored.id, MOST_QUEUED + 1)
        if len(waiting) > MOST_QUEUED or any(change.operation == TRUNCATED for change in waiting):
            raise TableBusyError(
                "the worker of {name!r} is far behind: roll back and try again when it has caught up",
                name=self._name,
            )
        keys = {change.row_key for change in waiting if not change.fault}
        return lookup.read_queued(connection, sorted(keys))

    def _put(
        self, connection: Connection, stored: StoredTable, lookup: Lookup, records: Mapping[str, Record]
    ) -> None:
        database = self._database
        if not records:
            return
        lookup.put(connection, records)
        # For the trigger's own change the worker would find an unchanged row, and not search its pairs.
        again = [Change(row_key, SEARCH_AGAIN) for row_key in records]
        changes.append_changes(connection, database.dialect, database.tables, stored.id, again)


def _own_keys(lookup: Lookup, given: Sequence[RowKey | None]) -> list[str | None]:
    keys = row_keys_of(lookup, given)
    named = [key for key in keys if key is not None]
    if len(set(named)) < len(named):
        raise InvalidArgumentError("two records have the same row key: each row has its own")
    return keys
