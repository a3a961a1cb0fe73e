"""The checks of the Python API, for callers with and without asyncio."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, overload

from sqlalchemy import Connection

from db_dedup.app.arguments import require, require_text
from db_dedup.app.table_checks import TableChecks
from db_dedup.errors import InvalidArgumentError
from db_dedup.records import CheckedColumns, CheckResult, Match, Record, Reservation, RowKey
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from db_dedup.app.arguments import SyncBind
    from db_dedup.app.asynchronous import AsyncBind


MOST_SECONDS: Final = 600
"""The longest time of a reservation."""


class Checks:
    """The methods of `Deduplicator` that find the stored rows which a record duplicates."""

    def __init__(self, checks: TableChecks) -> None:
        self._checks = checks

    @overload
    def check(
        self,
        record: Record,
        connection: SyncBind | None = None,
        *,
        block: bool = False,
        row_key: RowKey | None = None,
    ) -> list[Match]: ...

    @overload
    def check(
        self, record: Record, connection: AsyncBind, *, block: bool = False, row_key: RowKey | None = None
    ) -> Coroutine[Any, Any, list[Match]]: ...

    def check(
        self,
        record: Record,
        connection: SyncBind | AsyncBind | None = None,
        *,
        block: bool = False,
        row_key: RowKey | None = None,
    ) -> list[Match] | Coroutine[Any, Any, list[Match]]:
        """Find the stored rows that this record duplicates, the nearest first.

        Args:
            record: column name -> value; what is missing counts as NULL.
            connection: a connection or session to the user's rows, which is neither committed nor rolled
                back. If our tables are in another database, they are read through a connection of our own.
                With an AsyncEngine, AsyncConnection or AsyncSession, await the result.
            block: let no other such check of the table begin until the caller's transaction ends, and compare
                with all rows that are committed by then. Needs a connection, triggers and a scan.
            row_key: the key of the record's own row, stored or not yet; only with `block`. The row is no
                duplicate of itself. Its fingerprint is stored if it has none.

        Raises:
            TableBusyError: with `block`, the table has been locked for too long: roll back and try again.
            InvalidArgumentError: an argument is not what it should be.
        """
        keys = None if row_key is None else [row_key]
        return self._checks.run(connection, [record], keys, block, lambda results: results[0].matches)

    @overload
    def check_in_full(
        self,
        record: Record,
        connection: SyncBind | None = None,
        *,
        block: bool = False,
        row_key: RowKey | None = None,
    ) -> CheckResult: ...

    @overload
    def check_in_full(
        self, record: Record, connection: AsyncBind, *, block: bool = False, row_key: RowKey | None = None
    ) -> Coroutine[Any, Any, CheckResult]: ...

    def check_in_full(
        self,
        record: Record,
        connection: SyncBind | AsyncBind | None = None,
        *,
        block: bool = False,
        row_key: RowKey | None = None,
    ) -> CheckResult | Coroutine[Any, Any, CheckResult]:
        """Find the duplicates as `check` does, and whether the record has too little text to judge."""
        keys = None if row_key is None else [row_key]
        return self._checks.run(connection, [record], keys, block, lambda results: results[0])

    @overload
    def check_many(
        self,
        records: Iterable[Record],
        connection: SyncBind | None = None,
        *,
        block: bool = False,
        row_keys: Iterable[RowKey | None] | None = None,
    ) -> list[CheckResult]: ...

    @overload
    def check_many(
        self,
        records: Iterable[Record],
        connection: AsyncBind,
        *,
        block: bool = False,
        row_keys: Iterable[RowKey | None] | None = None,
    ) -> Coroutine[Any, Any, list[CheckResult]]: ...

    def check_many(
        self,
        records: Iterable[Record],
        connection: SyncBind | AsyncBind | None = None,
        *,
        block: bool = False,
        row_keys: Iterable[RowKey | None] | None = None,
    ) -> list[CheckResult] | Coroutine[Any, Any, list[CheckResult]]:
        """Check n records as `check_in_full` does one, with a few statements for some hundred records.

        The records are not compared with each other.

        Args:
            records: n records.
            connection: as for `check`.
            block: as for `check`. All records are compared with the same state of the table: two new records
                that are equal have no match.
            row_keys: n row keys, each as for `check`; None for one that is not known.

        Returns:
            n results, in the order of the records.
        """
        return self._checks.run(connection, records, row_keys, block, lambda results: results)

    def checked_columns(self, connection: Connection) -> CheckedColumns:
        """Return which columns of a record the last check read, and of which the row key is made.

        Args:
            connection: to the user's rows; it is used only before the first check.
        """
        return self._checks.columns(connection)

    def check_together(
        self,
        connection: Connection,
        records: Iterable[Record],
        row_keys: Iterable[RowKey | None],
        deleted: Iterable[RowKey] = (),
        *,
        block: bool = False,
    ) -> list[CheckResult]:
        """Check n records that are going to be stored in one transaction, before they are.

        As `check_many`, but the records are compared with each other, and not with rows that they overwrite
        or that are deleted with them.

        Args:
            connection: in the transaction; of asyncio, what `run_sync` hands over.
            records: n records.
            row_keys: for each record the key of its own row, stored or not yet; None for one that is not
                known.
            deleted: the keys of rows that the transaction is going to delete.
            block: as for `check`.

        Returns:
            n results; `others` are the positions of the earlier records that a record duplicates.
        """
        return self._checks.run_together(connection, records, row_keys, deleted, block)

    def make_ready(self) -> None:
        """Load and compile what checks and reservations need, so that the first one is as fast as others."""
        self._checks.make_ready()

    def reserve(
        self, record: Record, seconds: float = 60, row_key: RowKey | None = None
    ) -> Reservation | CheckResult:
        """Check a record as `check` with `block` does and, if it is new, keep others like it out for a while.

        For a program that stores the row in a transaction of its own, elsewhere. The reservation contains no
        text. It ends when it expires, when it is confirmed or released, or when the row of its key is stored.
        Nothing keeps others out after that.

        Args:
            record: as for `check`.
            seconds: until it expires, 1 to 600.
            row_key: the key of the row that will be stored, if it is known already.

        Returns:
            A Reservation; or, if the record has duplicates, the result of the check.

        Raises:
            TableBusyError: as of `check`.
            InvalidArgumentError: an argument is not what it should be.
        """
        require(seconds, int | float, "seconds", Phrase("a number from 1 to 600"))
        if not 1 <= seconds <= MOST_SECONDS:
            raise InvalidArgumentError("seconds should be a number from 1 to 600, not {given}", given=seconds)
        return self._checks.reserve(record, row_key, seconds)

    def confirm(self, name: str, row_key: RowKey | None = None) -> None:
        """End a reservation whose row is committed.

        Args:
            name: of the reservation.
            row_key: of the row, unless the reservation has it.

        Raises:
            ReservationExpiredError: it had ended before, so a row like it may have been stored: check again.
            RowNotFoundError: the row is not there.
        """
        require_text(name, "name")
        self._checks.confirm(name, row_key)

    def release(self, name: str) -> bool:
        """End a reservation whose row will not be stored; return whether there was one."""
        require_text(name, "name")
        return self._checks.release(name)
