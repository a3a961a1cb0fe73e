"""Check whether records are duplicates of stored rows, on our own connection or on the caller's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import Connection

from db_dedup.app.arguments import (
    is_async_engine,
    is_session,
    iterable_of,
    records_of,
    require,
    sync_bind,
)
from db_dedup.app.asynchronous import bridged, is_async
from db_dedup.app.blocking_check import BlockingCheck
from db_dedup.app.checks_together import compare_together, row_keys_of
from db_dedup.app.database import Database
from db_dedup.app.engines import find_engine
from db_dedup.app.table_access import TableAccess
from db_dedup.engines.base import Lookup
from db_dedup.errors import InvalidArgumentError
from db_dedup.records import CheckedColumns, CheckResult, Record, Reservation, RowKey
from db_dedup.store import reservations
from db_dedup.store.watched_tables import StoredTable, is_unchanged
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from db_dedup.app.arguments import SyncBind
    from db_dedup.app.asynchronous import AsyncBind

_T = TypeVar("_T")

_MOST_TRIES: Final = 3
"""For an answer that changes during each of them: a check of many records beside a busy worker."""


class TableChecks:
    """Checks records against the stored rows of one table."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name
        self._prepared: tuple[StoredTable, Lookup] | None = None
        self._ready: Lookup | None = None

    def run(
        self,
        given: SyncBind | AsyncBind | None,
        records: Iterable[Record],
        row_keys: Iterable[RowKey | None] | None,
        block: bool,
        result_of: Callable[[list[CheckResult]], _T],
    ) -> _T | Coroutine[Any, Any, _T]:
        """Return the results of n records, or an awaitable if the connection is one of asyncio.

        Args:
            given: the connection or session; None for one of ours.
            records: n records.
            row_keys: n keys, None for a key that is not known; or None instead of the list.
            block: lock the table until the caller's transaction ends.
            result_of: turns the n results into the value to return.
        """
        checked = records_of(records)
        keys = _keys_of(row_keys, len(checked))
        if keys is not None and not block:
            raise InvalidArgumentError("a row key is for a check that blocks: write block=True")
        if block and (given is None or is_async_engine(given)):
            raise InvalidArgumentError(
                "a check that blocks works in a transaction of yours: hand over its connection or session"
            )

        def work(bind: SyncBind | None) -> _T:
            with self._database.translate_driver_errors():
                if block and bind is not None:
                    return result_of(self._check_blocking(_flushed(bind), checked, keys))
                with self.connected(bind) as (ours, theirs):
                    return result_of(self._check(ours, theirs, checked))

        if is_async(given):
            return bridged(self._database, given, work)
        return work(sync_bind(given))

    def columns(self, connection: Connection) -> CheckedColumns:
        """Return which columns of a record a check reads, by the settings of the last check.

        Raises:
            InvalidArgumentError: it is no connection.

        Only before the first check are they read: a transaction that has read something may not be able to
        wait for the lock of a check that blocks.
        """
        require(connection, Connection, "connection", Phrase("a Connection of SQLAlchemy"))
        if self._prepared is None:
            with self._database.translate_driver_errors(), self.connected(connection) as (ours, theirs):
                self._prepare(ours, theirs)
        assert self._prepared is not None  # noqa: S101 - `_prepare` sets it
        watched = self._prepared[0].watched
        within = (part.column for part in watched.within)
        names = tuple(dict.fromkeys([*watched.columns, *within]))
        return CheckedColumns(watched.table_name, names, watched.key or ())

    def run_together(
        self,
        connection: Connection,
        given: Iterable[Record],
        row_keys: Iterable[RowKey | None],
        deleted: Iterable[RowKey],
        block: bool,
    ) -> list[CheckResult]:
        """Return the results of n records that are going to be stored in one transaction.

        Args:
            connection: in the transaction.
            given: n records.
            row_keys: n keys, None for a key that is not known.
            deleted: the keys of rows that are deleted with them.
            block: lock the table until the transaction ends.
        """
        require(connection, Connection, "connection", Phrase("a Connection of SQLAlchemy"))
        records = records_of(given)
        keys = _keys_of(row_keys, len(records)) or []
        gone = list(iterable_of(deleted, "deleted", Phrase("row keys")))
        with self._database.translate_driver_errors():
            if block:
                return self._check_blocking(connection, records, keys, gone)
            with self.connected(connection) as (ours, theirs):
                lookup = self._lookup(ours, theirs)
                own_keys = row_keys_of(lookup, keys)
                found = self._check(ours, theirs, records, own_keys)
                return compare_together(ours, theirs, lookup, records, found, [*own_keys, *gone])

    def make_ready(self) -> None:
        """Load and compile what checks and reservations need, before a lock is taken."""
        with self._database.translate_driver_errors(), self.connected(None) as (ours, theirs):
            lookup = self._lookup(ours, theirs)
        if lookup is not self._ready:
            lookup.make_ready()
            self._ready = lookup

    def reserve(self, record: Record, row_key: RowKey | None, seconds: float) -> Reservation | CheckResult:
        """Reserve a record in a transaction of our own, or return the result of the check."""
        (checked,) = records_of([record])
        self.make_ready()
        return self._blocking(lambda checker, ours: checker.reserve(ours, checked, row_key, seconds))

    def confirm(self, name: str, row_key: RowKey | None) -> None:
        """End a reservation whose row is stored."""
        self._blocking(lambda checker, ours: checker.confirm(ours, name, row_key))

    def release(self, name: str) -> bool:
        """End a reservation; return whether there was one."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as ours,
        ):
            stored = self._access.require_stored(ours)
            return reservations.remove(ours, database.tables, stored.id, name)

    def _blocking(self, work: Callable[[BlockingCheck, Connection], _T]) -> _T:
        database = self._database
        checker = BlockingCheck(database, self._name, lambda c: self._lookup(c, c))
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as ours,
        ):
            return work(checker, ours)

    @contextmanager
    def connected(self, given: SyncBind | None) -> Iterator[tuple[Connection, Connection]]:
        """Yield (connection to our tables, connection to the user's rows), the given one if possible."""
        if is_session(given):
            given = given.connection()
        if given is not None and not self._database.is_apart:
            yield given, given
            return
        with self._database.engine.connect() as ours:
            if given is not None:
                yield ours, given
                return
            with self._database.reading(ours) as theirs:
                yield ours, theirs

    def _check_blocking(
        self,
        connection: Connection,
        records: Sequence[Record],
        keys: Sequence[RowKey | None] | None,
        deleted: Sequence[RowKey] | None = None,
    ) -> list[CheckResult]:
        checker = BlockingCheck(self._database, self._name, lambda c: self._lookup(c, c))
        return checker.check(connection, records, keys or [None] * len(records), deleted)

    def _check(
        self,
        connection: Connection,
        source_connection: Connection,
        records: Sequence[Record],
        own_keys: Sequence[str | None] | None = None,
    ) -> list[CheckResult]:
        """Check by one state of the answer: what has changed meanwhile may be half seen, so check again.

        A scan that has switched to another recipe removes the former. A batch of the worker may delete the
        canonical row of a class between two statements, and the class is looked up by that row.
        """
        stored, lookup = self._prepare(connection, source_connection)
        tries = 0
        while True:
            found = lookup.check(connection, records, source_connection, own_keys=own_keys)
            if is_unchanged(connection, self._database.tables, stored):
                return found
            before, (stored, lookup) = stored, self._prepare(connection, source_connection)
            tries += 1
            if tries >= _MOST_TRIES and stored.is_alike(before):
                return found

    def _lookup(self, connection: Connection, source_connection: Connection) -> Lookup:
        return self._prepare(connection, source_connection)[1]

    def _prepare(self, connection: Connection, source_connection: Connection) -> tuple[StoredTable, Lookup]:
        """Return the table as it is now and its look-up, which is kept until a scan changes the recipe."""
        prepared = self._prepared
        stored = self._access.require_scanned(connection, check_schema=prepared is None).require_current()
        if prepared is not None and stored.is_alike(prepared[0]):
            return stored, prepared[1]
        watched, source = self._access.inspected(connection, stored.watched, source_connection)
        recipe = self._access.recipe(connection, stored)
        lookup = find_engine().lookup(watched, recipe, self._access.store(stored), source)
        self._prepared = stored, lookup
        return stored, lookup


def _keys_of(given: Iterable[RowKey | None] | None, count: int) -> list[RowKey | None] | None:
    if given is None:
        return None
    keys = list(iterable_of(given, "row_keys", Phrase("row keys")))
    if len(keys) != count:
        raise InvalidArgumentError(
            "there are {records} records and {keys} row keys: give one for each",
            records=count,
            keys=len(keys),
        )
    return keys


def _flushed(bind: SyncBind) -> Connection:
    """Return the connection; a session is flushed first."""
    if is_session(bind):
        bind.flush()
        return bind.connection()
    return bind
