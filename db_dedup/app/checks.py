"""The checks of the Python API, for callers with and without asyncio."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, overload

from db_dedup.app.arguments import SyncBind
from db_dedup.app.table_checks import TableChecks
from db_dedup.records import CheckResult, Match, Record, RowKey

if TYPE_CHECKING:
    from db_dedup.app.asynchronous import AsyncBind


class Checks:
    """What `Deduplicator` says of records that may be duplicates of stored rows."""

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
            connection: read through this one, which is neither committed nor rolled back. It leads to the
                user's rows; our tables, if they are apart, are read through one of our own. With an
                AsyncEngine, AsyncConnection or AsyncSession the result is to be awaited.
            block: until the caller's transaction ends, no other such check of the table begins; all that is
                committed by then is judged as it is now. Needs a connection, triggers and a scan.
            row_key: of the row that the record is or becomes, if known; only with `block`. It is no duplicate
                of itself, and its fingerprint is stored where it has none.

        Raises:
            TableBusyError: with `block`, others have the table for too long: roll back and try again.
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
        """As `check`, and whether there was too little text to judge."""
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
        """Check n records as `check_in_full` would one by one, by a few statements for some hundred records.

        A method of its own: `check` gives a list of matches, this one a list of results, and a caller should
        see from the name which it is. The records are not compared with each other.

        Args:
            records: n records.
            connection: as for `check`.
            block: as for `check`. The whole batch takes its turn once, and all records are judged by the same
                state of the table; so two of them that are new and equal are both called new.
            row_keys: n row keys, each as for `check`; None for one that is not known.

        Returns:
            n results, in the order of the records.
        """
        return self._checks.run(connection, records, row_keys, block, lambda results: results)
