"""The user's rows: read in pages, never written, never sorted by OFFSET."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    and_,
    column,
    func,
    literal,
    not_,
    null,
    select,
    table,
    text,
    true,
    tuple_,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from db_dedup.config import WatchedTable, Within
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.errors import ConfigError, DedupError, RowKeyError
from db_dedup.records import Family, SourceRow, SourceTable
from db_dedup.schema.types import MAX_KEY_LENGTH
from db_dedup.store.inspection import check_columns, check_names, resolve_key
from db_dedup.store.ordering import order_text
from db_dedup.store.values import canonical_text, holds_nul, is_encodable

PAGE_SIZE: Final = 10_000
_KEYS_A_QUERY: Final = 1_000
_CUTS: Final[Mapping[str, int]] = {"day": len("2019-02-14"), "month": len("2019-02"), "year": len("2019")}

OpenConnection = Callable[[], AbstractContextManager[Connection]]


class Source:
    """The rows of one watched table, as the flow takes them.

    Attributes:
        table: what inspection found.
        key_columns: what identifies a row.
        value_names: the columns of `SourceRow.values`, in their order.
        rows_without_key: rows left out so far because a part of their key is NULL.
    """

    def __init__(self, dialect: Dialect, source: SourceTable, watched: WatchedTable) -> None:
        """Check that every column is there.

        Raises:
            ConfigError: one is not, or nothing identifies a row.
        """
        check_columns(watched, source)
        self.table = source
        self.key_columns = resolve_key(source, watched.key)
        self.order_column = source.column(watched.order) if watched.order else None
        self.value_names = tuple(watched.columns)
        self.rows_without_key = 0
        self._dialect = dialect
        self._value_columns = [source.column(name) for name in self.value_names]
        self._within = [(part, source.column(part.column)) for part in watched.within]
        self._table = table(
            _quoted(source.name),
            *(column(_quoted(c.name), NullType()) for c in source.columns),
            schema=None if source.schema is None else _quoted(source.schema),
        )
        self._condition = _condition(watched.where)

    def check_condition(self, connection: Connection) -> None:
        """Let the database read the `where` once, before a job begins.

        Raises:
            ConfigError: it does not understand it.
        """
        query = select(literal(1)).select_from(self._table).limit(0)
        connection.execute(query)
        try:
            connection.execute(query.where(self._condition))
        except SQLAlchemyError as error:
            told = self._dialect.translate_error(error)
            raise told if told.is_transient else self._not_understood(told) from error

    def _not_understood(self, told: DedupError) -> ConfigError:
        return ConfigError(f"the database does not understand the `where` of {self.table.name!r}: {told}")

    def count(self, connection: Connection) -> int:
        """How many rows there are to read."""
        return self._count(connection, true())

    def pages(self, engine: Engine, page_size: int = PAGE_SIZE) -> Generator[list[SourceRow], None, None]:
        """Every row once, in pages; writes of ours may go on between two of them."""
        with self._dialect.read_snapshot(engine) as connection:
            if self._dialect.reads_beside_writes(connection):
                yield from self.read_pages(connection, page_size)
                return
        yield from self.read_keyset_pages(lambda: self._dialect.read_snapshot(engine), page_size)

    def read_pages(
        self, connection: Connection, page_size: int = PAGE_SIZE
    ) -> Generator[list[SourceRow], None, None]:
        """Every row once, in one streaming pass, in the order in which the database gives them."""
        options = {"stream_results": True, "yield_per": page_size}
        with connection.execute(self._query(), execution_options=options) as result:
            for partition in result.partitions():
                yield self._source_rows(partition)

    def read_keyset_pages(
        self, open_connection: OpenConnection, page_size: int = PAGE_SIZE
    ) -> Iterator[list[SourceRow]]:
        """Every row once, by key, each page in a short transaction of its own."""
        keys = [self._table.c[c.name] for c in self.key_columns]
        has_key = and_(*(key.is_not(None) for key in keys))
        query = self._query().add_columns(*keys).where(has_key).order_by(*keys).limit(page_size)
        rows: Sequence[Row[Any]] = ()
        while True:
            page = query.where(_after(keys, rows[-1][-len(keys) :])) if rows else query
            with open_connection() as connection:
                rows = connection.execute(page).all()
            yield self._source_rows(rows)
            if len(rows) < page_size:
                break
        if any(column.is_nullable for column in self.key_columns):
            with open_connection() as connection:
                self.rows_without_key += self._count(connection, not_(has_key))

    def read_rows(self, connection: Connection, row_keys: Iterable[str]) -> Iterator[SourceRow]:
        """The rows of these keys, through the user's index; one that is gone is left out."""
        for batch in batches(row_keys, _KEYS_A_QUERY):
            wanted = self._dialect.key_list(batch)
            matches = self._dialect.key_matches(self.key_columns, self._table, wanted.c.row_key)
            query = self._query().select_from(wanted.join(self._table, matches))
            yield from self._source_rows(connection.execute(query))

    def row_from(self, record: Mapping[str, object]) -> SourceRow:
        """A record that is not stored (yet), as a row without a key; what it leaves out is NULL.

        Raises:
            UnknownNameError: it names a column that the table does not have.
        """
        check_names(record, self.table)
        within = [record.get(c.name) for _, c in self._within]
        return SourceRow(
            row_key="",
            order_value=None,
            values=tuple(canonical_text(record.get(c.name), c.family) for c in self._value_columns),
            within=self._within_text(within),
        )

    def _count(self, connection: Connection, which: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(self._table).where(self._condition, which)
        return int(connection.execute(query).scalar_one())

    def _query(self) -> Select[Any]:
        values = [self._dialect.readable(c, self._table.c[c.name]) for c in self._value_columns]
        within = [self._dialect.readable(c, self._table.c[c.name]) for _, c in self._within]
        order = self.order_column
        chosen: list[ColumnElement[Any]] = [
            self._dialect.row_key(self.key_columns, self._table),
            null() if order is None else self._dialect.readable(order, self._table.c[order.name]),
            *values,
            *within,
        ]
        # Labels of our own: two of the user's names may differ in nothing that a result keeps apart.
        return select(*(c.label(f"dedup_{i}") for i, c in enumerate(chosen))).where(self._condition)

    def _source_rows(self, rows: Iterable[Sequence[Any]]) -> list[SourceRow]:
        families = [c.family for c in self._value_columns]
        order_family = self.order_column.family if self.order_column else Family.OTHER
        first_within = 2 + len(families)
        found = []
        for row in rows:
            if row[0] is None:
                self.rows_without_key += 1
                continue
            found.append(
                SourceRow(
                    row_key=storable_key(row[0]),
                    order_value=order_text(row[1], order_family),
                    values=tuple(map(canonical_text, row[2:first_within], families)),
                    within=self._within_text(row[first_within:]),
                )
            )
        return found

    def _within_text(self, values: Sequence[Any]) -> str | None:
        """What both rows of a pair must agree in; rows without a value there agree with each other."""
        if not self._within:
            return None
        pairs = zip(self._within, values, strict=False)  # a page by key brings the key columns, too
        parts = [_within_part(part, value, column.family) for (part, column), value in pairs]
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def _within_part(part: Within, value: Any, family: Family) -> str:
    if part.by == "value":
        return canonical_text(value, family).strip()
    # A column of text may hold dates, too.
    return canonical_text(canonical_text(value, family), Family.DATE).strip()[: _CUTS[part.by]]


def storable_key(row_key: str) -> str:
    """The same row key.

    Raises:
        RowKeyError: it cannot be stored.
    """
    if len(row_key) > MAX_KEY_LENGTH:
        raise RowKeyError(
            f"a row key has {len(row_key)} characters, more than the {MAX_KEY_LENGTH} that fit: "
            f"it begins {row_key[:40]!r}"
        )
    if not is_encodable(row_key):
        raise RowKeyError(
            f"a row key is no valid UTF-8 text: {row_key[:40]!r}; mend it, or leave such rows out by `where`"
        )
    if holds_nul(row_key):
        raise RowKeyError(
            f"a row key holds a NUL character: {row_key[:40]!r}; mend it, or leave such rows out by `where`"
        )
    return row_key


def _after(keys: Sequence[ColumnElement[Any]], last: Sequence[Any]) -> ColumnElement[bool]:
    """Rows whose key sorts after `last`; of several columns as one row value, which an index serves whole."""
    values = [literal(value, NullType()) for value in last]
    return keys[0] > values[0] if len(keys) == 1 else tuple_(*keys) > tuple_(*values)


def _condition(where: str | None) -> ColumnElement[bool]:
    """The user's own SQL, in which a colon is a colon and a comment ends with its line."""
    if where is None or not where.strip():
        return true()
    escaped = where.replace(":", r"\:")
    return text(f"({escaped}\n)")  # type: ignore[return-value]


def _quoted(name: str) -> quoted_name:
    return quoted_name(name, quote=True)
