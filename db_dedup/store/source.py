"""The user's rows: read in pages, never written, never sorted by OFFSET."""

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Text,
    and_,
    column,
    func,
    literal,
    not_,
    null,
    or_,
    select,
    table,
    text,
    true,
    tuple_,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.errors import ConfigError, DedupError, RowKeyError
from db_dedup.records import Family, RowKey, SourceColumn, SourceRow, SourceTable
from db_dedup.records.pages import cut_pages
from db_dedup.schema.types import MAX_KEY_LENGTH
from db_dedup.store.inspection import check_columns, check_names, resolve_key
from db_dedup.store.ordering import order_text
from db_dedup.store.read_size import ReadSize
from db_dedup.store.values import canonical_text, holds_nul, is_encodable
from db_dedup.store.within import check_dates, within_part

PAGE_ROWS: Final = 10_000
_KEYS_A_QUERY: Final = 1_000
_SAMPLE_ROWS: Final = 1_000

_Item = TypeVar("_Item")

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
        self._read_size = ReadSize()
        self._value_columns = [source.column(name) for name in self.value_names]
        self._within = [(part, source.column(part.column)) for part in watched.within]
        self._table = table(
            _quoted(source.name),
            *(column(_quoted(c.name), NullType()) for c in source.columns),
            schema=None if source.schema is None else _quoted(source.schema),
        )
        self._condition = _condition(watched.where)
        asked = [(c, dialect.is_found_by_text(c, self._table.c[c.name])) for c in self.key_columns]
        self._doubtful = [(column, condition) for column, condition in asked if condition is not None]
        others = [*self._value_columns, *(c for _, c in self._within), *filter(None, [self.order_column])]
        # What the user's `where` means is not known: it may compare a date with a moment.
        self._depends_on_session = (
            bool(watched.where)
            or any(dialect.depends_on_session(c, is_key=True) for c in self.key_columns)
            or any(dialect.depends_on_session(c, is_key=False) for c in others)
        )

    def check_settings(self, connection: Connection) -> None:
        """Let the database read the `where` once, and look for dates in the columns that should hold them.

        Raises:
            ConfigError: it does not understand it, or there are none.
        """
        query = select(literal(1)).select_from(self._table).limit(0)
        connection.execute(query)
        try:
            connection.execute(query.where(self._condition))
        except SQLAlchemyError as error:
            told = self._dialect.translate_error(error)
            raise told if told.is_transient else self._not_understood(told) from error
        for part, within_column in self._within:
            check_dates(part, within_column, partial(self._sample, connection, within_column))

    def _not_understood(self, told: DedupError) -> ConfigError:
        return ConfigError(f"the database does not understand the `where` of {self.table.name!r}: {told}")

    def _sample(self, connection: Connection, column: SourceColumn) -> Sequence[Any]:
        """Some values of a column, without NULL."""
        value = self._table.c[column.name]
        query = select(self._dialect.readable(column, value).label("dedup_value"))
        return (
            connection.execute(query.where(self._condition, value.is_not(None)).limit(_SAMPLE_ROWS))
            .scalars()
            .all()
        )

    def count(self, connection: Connection) -> int:
        """How many rows there are to read."""
        return self._count(connection, true())

    def pages(self, engine: Engine, page_size: int = PAGE_ROWS) -> Generator[list[SourceRow], None, None]:
        """Every row once, in pages; writes of ours may go on between two of them."""
        with self._dialect.read_snapshot(engine) as connection:
            if self._dialect.reads_beside_writes(connection):
                yield from self.read_pages(connection, page_size)
                return
        yield from self.read_keyset_pages(lambda: self._dialect.read_snapshot(engine), page_size)

    def read_pages(
        self, connection: Connection, page_size: int = PAGE_ROWS
    ) -> Generator[list[SourceRow], None, None]:
        """Every row once, in one streaming pass, in the order in which the database gives them."""
        for rows in cut_pages(self._streamed(connection, self._page_query()), _raw_length, page_size):
            yield self._page(rows)

    def read_keyset_pages(
        self, open_connection: OpenConnection, page_size: int = PAGE_ROWS
    ) -> Iterator[list[SourceRow]]:
        """Every row once, by key, each page in a short transaction of its own."""
        keys = [self._table.c[c.name] for c in self.key_columns]
        has_key = and_(*(key.is_not(None) for key in keys))
        row_key = self._dialect.bytewise(self._dialect.row_key(self.key_columns, self._table))
        query = self._page_query().add_columns(*keys).where(has_key).order_by(*keys, row_key)
        rows: Sequence[Row[Any]] = ()
        while True:
            page = query.limit(page_size)  # without it SQLite would sort all rows where no index serves
            if rows:
                # The last row comes once more, and any other row of the same key with it.
                page = query.limit(page_size + 1).where(
                    _from(keys, rows[-1][-len(keys) :], row_key, rows[-1][0])
                )
            with open_connection() as connection, closing(self._streamed(connection, page)) as found:
                rows = next(cut_pages(_behind(rows, found), _raw_length, page_size), [])
            if not rows:
                break
            yield self._page(rows)
        if any(column.is_nullable for column in self.key_columns):
            with open_connection() as connection:
                self.rows_without_key += self._count(connection, not_(has_key))

    def read_rows(self, connection: Connection, row_keys: Iterable[str]) -> Iterator[SourceRow]:
        """The rows whose row key is, character by character, one of these; each once.

        They are read through the user's index; one that is gone is left out.

        Raises:
            RowKeyError: two rows have the same key.
        """
        for batch in self.batches(dict.fromkeys(row_keys)):
            asked = set(batch)
            wanted = self._dialect.key_list(batch)
            matches = self._dialect.key_matches(self.key_columns, self._table, wanted.c.row_key)
            query = self._query().select_from(wanted.join(self._table, matches))
            with self._settled(connection):
                raw = self._noted(connection.execute(query).all())
            # A key that somebody has typed may lead to a row and not be its key, as 007 to the row 7.
            rows = [row for row in self._source_rows(raw) if row.row_key in asked]
            refuse_repeated([row.row_key for row in rows])
            yield from rows

    def batches(self, items: Iterable[_Item], most: int = _KEYS_A_QUERY) -> Iterator[list[_Item]]:
        """Items that each stand for a row, as many at a time as rows of this table may be in memory."""
        return self._read_size.batches(items, most)

    def rows_within(self, characters: int) -> int:
        """How many rows of this table have so many characters together, as far as it was read."""
        return self._read_size.rows_within(characters)

    def require_gone(self, connection: Connection, row_keys: Iterable[str]) -> None:
        """Prove that rows which `read_rows` did not find are not there.

        Only where the database may fail to find a value by its text is the table read for it, as a whole.

        Raises:
            RowKeyError: one is there.
        """
        if not self._doubtful:
            return
        row_key = self._dialect.row_key(self.key_columns, self._table)
        for batch in batches(row_keys, _KEYS_A_QUERY):
            query = select(row_key).select_from(self._table).where(self._condition)
            wanted = self._dialect.key_list(batch)
            is_wanted = self._dialect.bytewise(row_key).in_(select(self._dialect.bytewise(wanted.c.row_key)))
            with self._settled(connection):
                found = connection.execute(query.where(is_wanted).limit(1)).scalar()
            if found is not None:
                raise self._not_found_by_key(found)

    def rows_from(self, connection: Connection, records: Sequence[Mapping[str, object]]) -> list[SourceRow]:
        """Records that are not stored (yet), as rows without a key; what one leaves out is NULL.

        Args:
            connection: leads to the user's rows; only a type that the database alone knows is asked for.
            records: column name -> value; UnknownNameError for a column that the table does not have.
        """
        for record in records:
            check_names(record, self.table)
        columns = [*self._value_columns, *(c for _, c in self._within)]
        with self._settled(connection):
            stored = self._dialect.as_stored(
                connection, [(c, r.get(c.name)) for r in records for c in columns]
            )
        return [self._keyless(stored[i : i + len(columns)]) for i in range(0, len(stored), len(columns))]

    def row_key_of(self, given: RowKey) -> str:
        """The row key that a caller means; InvalidArgumentError where the table can have no such key."""
        return self._dialect.given_key(self.key_columns, given)

    def _keyless(self, values: Sequence[object]) -> SourceRow:
        count = len(self._value_columns)
        texts = map(canonical_text, values[:count], [c.family for c in self._value_columns])
        return SourceRow("", None, tuple(texts), self._within_text(values[count:]))

    def _settled(self, connection: Connection) -> AbstractContextManager[None]:
        return self._dialect.settled(connection) if self._depends_on_session else nullcontext()

    def _count(self, connection: Connection, which: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(self._table).where(self._condition, which)
        return int(connection.execute(query).scalar_one())

    def _page_query(self) -> Select[Any]:
        """Rows with, behind their columns, whether each is found by its own key."""
        is_found = and_(true(), *(condition for _, condition in self._doubtful))
        return self._query().add_columns(is_found.label("dedup_is_found"))

    def _page(self, rows: Sequence[Row[Any]]) -> list[SourceRow]:
        for row in rows:
            if row[0] is not None and not row.dedup_is_found:
                raise self._not_found_by_key(row[0])
        return self._source_rows(rows)

    def _not_found_by_key(self, row_key: str) -> RowKeyError:
        columns = ", ".join(f"{c.name!r} ({c.type_name or 'no type'})" for c, _ in self._doubtful)
        return RowKeyError(
            f"the database does not find a row by its own key {row_key[:40]!r}, made of column {columns}: "
            f"name another key, or leave such rows out by `where`"
        )

    def _streamed(self, connection: Connection, query: Select[Any]) -> Generator[Row[Any], None, None]:
        """The rows of a query; no more than a page of them is fetched at once."""
        streamed = {"stream_results": True}
        with self._settled(connection), connection.execute(query, execution_options=streamed) as result:
            while rows := result.fetchmany(self._read_size.rows):
                yield from self._noted(rows)

    def _noted(self, rows: Sequence[Row[Any]]) -> Sequence[Row[Any]]:
        self._read_size.note(len(rows), sum(map(_raw_length, rows)))
        return rows

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
        parts = [within_part(part, value, column.family) for (part, column), value in pairs]
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


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


def _raw_length(row: Row[Any]) -> int:
    """Characters of a row as it came; what is no text has few."""
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _behind(last_page: Sequence[Row[Any]], rows: Iterable[Row[Any]]) -> Iterator[Row[Any]]:
    """The rows that come after the last one of a page, with which they begin if it is still there.

    Raises:
        RowKeyError: another row has the same key as that one.
    """
    found = iter(rows)
    last_key = last_page[-1][0] if last_page else None
    first = next(found, None)
    if first is not None and last_key is not None and first[0] == last_key:
        first = next(found, None)
        if first is not None and first[0] == last_key:
            raise _repeated(first[0])
    if first is not None:
        yield first
        yield from found


def refuse_repeated(row_keys: Sequence[str]) -> None:
    """Raise RowKeyError where two rows have the same key."""
    if len(set(row_keys)) < len(row_keys):
        raise _repeated(Counter(row_keys).most_common(1)[0][0])


def _repeated(row_key: str) -> RowKeyError:
    return RowKeyError(f"two rows have the same key {row_key[:40]!r}: name a unique key")


def _from(
    keys: Sequence[ColumnElement[Any]],
    last: Sequence[Any],
    row_key: ColumnElement[str],
    last_key: str,
) -> ColumnElement[bool]:
    """Rows from `last` on; several columns are one row value, which an index serves whole.

    Keys that are equal under the columns' collations are in the order of their row keys.
    """
    values = [literal(value, NullType()) for value in last]
    key, value = (keys[0], values[0]) if len(keys) == 1 else (tuple_(*keys), tuple_(*values))
    return and_(key >= value, or_(key > value, row_key >= literal(last_key, Text())))


def _condition(where: str | None) -> ColumnElement[bool]:
    """The user's own SQL, in which a colon is a colon and a comment ends with its line."""
    if where is None or not where.strip():
        return true()
    escaped = where.replace(":", r"\:")
    return text(f"({escaped}\n)")  # type: ignore[return-value]


def _quoted(name: str) -> quoted_name:
    return quoted_name(name, quote=True)
