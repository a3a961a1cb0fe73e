"""The rows of a table with their groups, to be written to a file."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy import Connection

from db_dedup.app.arguments import iterable_of
from db_dedup.app.deduplicator import Deduplicator
from db_dedup.app.distinct_names import distinct_names
from db_dedup.app.key_hashes import KeyHashes
from db_dedup.dialects.batches import batches
from db_dedup.errors import InvalidArgumentError, TableBusyError
from db_dedup.flow.rows.order import Receipt, receipt
from db_dedup.records import Family, SourceColumn, SourceRow
from db_dedup.store import watched_tables
from db_dedup.store.memberships import Membership, find_memberships
from db_dedup.store.typed_rows import TypedSource
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

ExportOrder = Literal["group", "key"]
EXPORT_ORDERS: Final[tuple[ExportOrder, ...]] = get_args(ExportOrder)
OUR_COLUMNS: Final = ("row_key", "group_id", "group_size", "is_representative", "kind")

_GROUPS_A_BATCH: Final = 500
_ROWS_A_BATCH: Final = 1_000


@dataclass(frozen=True)
class ExportedColumn:
    """A column of an export: its name in the file, and what its values are."""

    name: str
    family: Family
    type_name: str = ""


@dataclass(frozen=True)
class TableExport:
    """The rows of a table, each under `columns`: ours come first, then those of the table.

    A row without duplicates is alone in its group, which it represents, as in the files that `file` writes.

    Attributes:
        columns: of each row.
        rows: the rows, which are read while they are taken.
        without_key: returns how many rows have been left out so far because a part of their key is NULL.
    """

    columns: tuple[ExportedColumn, ...]
    rows: Iterator[tuple[Any, ...]]
    without_key: Callable[[], int]


def export_table(
    dedup: Deduplicator,
    columns: Sequence[str] | None = None,
    only_duplicates: bool = False,
    order: ExportOrder = "group",
) -> TableExport:
    """Return the rows of a table as they are now, with the groups of the stored answer.

    The rows are read some thousand at a time while they are taken; a group's row keys are in memory at once,
    and in the order "group" 16 bytes for each row that is in a group. Each row comes once, with its place as
    it is when the row is read, also if the answer changes meanwhile.

    Args:
        dedup: the table.
        columns: the columns of the table; None for all.
        only_duplicates: leave out rows that are in no group.
        order: "group": the largest groups first, the rows of each in the order they were received, then rows
            without duplicates, and those whose group has changed meanwhile; or "key".

    Raises:
        TableBusyError: while the rows are taken: a scan has switched the answer to other settings.
        UnknownNameError: the table has no such column.
        InvalidArgumentError: an argument is not what it should be.
    """
    if order not in EXPORT_ORDERS:
        raise InvalidArgumentError(
            "there is no order {order!r}: choose from {orders}", order=order, orders=", ".join(EXPORT_ORDERS)
        )
    chosen = (
        None
        if columns is None
        else list(dict.fromkeys(iterable_of(columns, "columns", Phrase("column names"))))
    )
    reader = _Reader(dedup, chosen)
    rows = reader.by_group(only_duplicates) if order == "group" else reader.by_key(only_duplicates)
    return TableExport(tuple(_columns(reader.columns)), rows, reader.without_key)


def _columns(columns: Sequence[SourceColumn]) -> Iterator[ExportedColumn]:
    """Yield our columns and the table's."""
    families = (Family.TEXT, Family.TEXT, Family.NUMBER, Family.BOOLEAN, Family.TEXT)
    for name, family in zip(OUR_COLUMNS, families, strict=True):
        yield ExportedColumn(name, family, "INTEGER" if family is Family.NUMBER else "")
    names = distinct_names([column.name for column in columns], OUR_COLUMNS)
    for name, column in zip(names, columns, strict=True):
        yield ExportedColumn(name, column.family, column.type_name)


class _Reader:
    """Reads rows and their places in groups, through short transactions."""

    def __init__(self, dedup: Deduplicator, columns: Sequence[str] | None) -> None:
        self._dedup, self._database, access = dedup, dedup.database, dedup._access
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            stored = access.require_stored(connection)
            watched, source = access.source(connection, stored.watched)
            self._store = access.store(stored)
        names = [column.name for column in source.table.columns] if columns is None else columns
        self._source = TypedSource(self._database.source_dialect, source.table, watched, names)
        self._written = KeyHashes()
        self._families = [column.family for column in source.key_columns]
        self.columns = [source.table.column(name) for name in names]

    def without_key(self) -> int:
        """Return how many rows have been left out so far because a part of their key is NULL."""
        return self._source.rows_without_key

    def by_key(self, only_duplicates: bool) -> Iterator[tuple[Any, ...]]:
        """Yield the rows in the order of the table."""
        with self._database.translate_driver_errors(), closing(self._pages()) as pages:
            for page in pages:
                places = self._places([row.row_key for row in page])
                for row in page:
                    if row.row_key in places or not only_duplicates:
                        yield _line(row, places.get(row.row_key))

    def by_group(self, only_duplicates: bool) -> Iterator[tuple[Any, ...]]:
        """Yield the rows group by group, then those that are in none or whose group has changed meanwhile."""
        with self._database.translate_driver_errors():
            version = self._answer_version()
            groups = self._dedup.groups()
            for some in batches(groups, _GROUPS_A_BATCH):
                members = self._dedup.members_of([group.group_id for group in some])
                yield from self._groups(list(members.values()))
            if only_duplicates and self._answer_version() == version:
                return
            with closing(self._pages()) as pages:
                for page in pages:
                    rows = {row.row_key: row for row in page}
                    others = self._written.others(list(rows))
                    places = self._places(others)
                    for key in others:
                        if key in places or not only_duplicates:
                            yield _line(rows[key], places.get(key))

    def _pages(self) -> Generator[list[SourceRow], None, None]:
        """Yield all rows; to be closed, because a lost connection is an error also where the reading ends."""
        return self._source.pages(self._database.source_engine)

    def _groups(self, groups: Sequence[Sequence[str]]) -> Iterator[tuple[Any, ...]]:
        places = self._places([key for keys in groups for key in keys])
        received = [
            place
            for keys in groups
            for place in sorted((places[key] for key in keys if key in places), key=self._received)
        ]
        # A row may have moved from a group that is written to this one, or between two of these.
        keys = self._written.others(list(dict.fromkeys(place.row_key for place in received)))
        for some in self._source.batches([places[key] for key in keys], _ROWS_A_BATCH):
            with self._database.source_engine.connect() as connection:
                rows = {r.row_key: r for r in self._source.read_rows(connection, [p.row_key for p in some])}
            self._written.add(list(rows))
            yield from (_line(rows[p.row_key], p) for p in some if p.row_key in rows)

    def _received(self, place: Membership) -> Receipt:
        return receipt(place.order_value, place.row_key, self._families)

    def _places(self, row_keys: Sequence[str]) -> dict[str, Membership]:
        with self._database.engine.connect() as connection:
            places = find_memberships(connection, self._store, row_keys)
            self._require_same_settings(connection)
        return places

    def _answer_version(self) -> int:
        with self._database.engine.connect() as connection:
            return self._require_same_settings(connection).answer_version

    def _require_same_settings(self, connection: Connection) -> StoredTable:
        """Return what is stored of the table, if the places that have been read are those of the answer."""
        name = self._dedup.name
        stored = watched_tables.find_table(connection, self._database.tables, name)
        if stored is None or stored.recipe != self._store.recipe:
            raise TableBusyError(
                "a scan of {name!r} by other settings has ended during the export: export again", name=name
            )
        return stored


def _line(row: SourceRow, place: Membership | None) -> tuple[Any, ...]:
    if place is None:
        return row.row_key, row.row_key, 1, True, None, *row.values
    return row.row_key, place.group_id, place.size, place.is_representative, place.kind, *row.values
