"""The user's rows: read by key or in pages, never written. No page is found by OFFSET."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cached_property, partial
from operator import add, itemgetter
from typing import Any, Final, TypeVar

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
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import quoted_name
from sqlalchemy.types import NullType

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.dialects.errors import evaluation_errors
from db_dedup.dialects.keys import KEY_LIST, given_key
from db_dedup.errors import ConfigError, DedupError, RowKeyError
from db_dedup.flow.rows.keys import refuse_repeated
from db_dedup.flow.rows.source_rows import RawRow, RowTexts, WithinColumn
from db_dedup.flow.rows.within import check_dates
from db_dedup.records import Family, RowKey, SourceColumn, SourceRow, SourceTable
from db_dedup.records.pages import cut_fetched
from db_dedup.records.read_size import ReadSize
from db_dedup.store.inspection import check_columns, check_names, resolve_key
from db_dedup.store.keyset import Fetched, fetched_after, from_row, rows_after

PAGE_ROWS: Final = 10_000
_KEYS_A_QUERY: Final = 1_000
_SAMPLE_ROWS: Final = 1_000

_TEXTS: Final = (str, bytes)
_FIRST: Final = itemgetter(0)

_Item = TypeVar("_Item")

ReadPage = Callable[[Connection, Select[Any], str | None], Sequence[Row[Any]]]
"""Reads a page of rows, of which the one with the given row key is left out."""

OpenConnection = Callable[[], AbstractContextManager[Connection]]


class Source:
    """The rows of one watched table, as the flow takes them.

    Attributes:
        table: what inspection found.
        key_columns: what identifies a row.
        value_names: the columns of `SourceRow.values`, in their order.
        value_columns: the same, as inspection found them.
        within: the columns that both rows of a pair must agree in, each with its setting.
        texts: turns values into the texts of `SourceRow`.
        from_clause: the table in a query; `condition` is that of the settings.
        doubtful: key columns that the database may not find by their text, with the condition that it does.
        rows_without_key: rows left out so far because a part of their key is NULL.
    """

    def __init__(self, dialect: Dialect, source: SourceTable, watched: WatchedTable) -> None:
        """Check that every column exists.

        Raises:
            ConfigError: one is not, or nothing identifies a row.
        """
        check_columns(watched, source)
        self.table = source
        self.key_columns = resolve_key(source, watched.key)
        self.order_column = source.column(watched.order) if watched.order else None
        self.value_names = tuple(watched.columns)
        self.rows_without_key = 0
        self.dialect = dialect
        self._read_size = ReadSize()
        self.value_columns = [source.column(name) for name in self.value_names]
        self.within = [(part, source.column(part.column)) for part in watched.within]
        self.texts = RowTexts(
            values=tuple(c.family for c in self.value_columns),
            order=self.order_column.family if self.order_column else Family.OTHER,
            within=tuple(WithinColumn(part.by, c.family) for part, c in self.within),
        )
        self.from_clause = table(
            _quoted(source.name),
            *(column(_quoted(c.name), NullType()) for c in source.columns),
            schema=None if source.schema is None else _quoted(source.schema),
        )
        self.condition, self._bare_condition = _conditions(watched.where)
        asked = [(c, dialect.is_found_by_text(c, self.from_clause.c[c.name])) for c in self.key_columns]
        self.doubtful = [(column, condition) for column, condition in asked if condition is not None]
        others = [*self.value_columns, *(c for _, c in self.within), *filter(None, [self.order_column])]
        # What the user's `where` means is not known: it may compare a date with a moment.
        self._depends_on_session = (
            bool(watched.where)
            or any(dialect.depends_on_session(c, is_key=True) for c in self.key_columns)
            or any(dialect.depends_on_session(c, is_key=False) for c in others)
        )

    def check_settings(self, connection: Connection) -> None:
        """Check that the database understands the `where`, and that `within` columns hold dates where they
        should.

        Raises:
            ConfigError: it does not, or a column has no dates.
        """
        query = select(literal(1)).select_from(self.from_clause).limit(0)
        connection.execute(query)
        try:
            # `1 = 1) OR (1 = 1` fits into the parentheses, and is not one condition.
            for condition in (self.condition, self._bare_condition):
                connection.execute(query.where(condition))
        except SQLAlchemyError as error:
            fault = self.dialect.translate_error(error)
            raise fault if fault.is_transient else self._not_understood(fault) from error
        for part, within_column in self.within:
            check_dates(part.by, within_column, partial(self._sample, connection, within_column))

    def _not_understood(self, fault: DedupError) -> ConfigError:
        return ConfigError(
            "the database does not understand the `where` of {table!r}: {fault}",
            table=self.table.name,
            fault=fault,
        )

    def _sample(self, connection: Connection, column: SourceColumn) -> Sequence[Any]:
        """Return some values of a column, without NULL."""
        value = self.from_clause.c[column.name]
        query = select(self.dialect.readable(column, value).label("dedup_value"))
        return connection.scalars(query.where(self.condition, value.is_not(None)).limit(_SAMPLE_ROWS)).all()

    def count(self, connection: Connection) -> int:
        """Return how many rows there are to read."""
        return self._count(connection, true())

    def snapshot(self, engine: Engine) -> AbstractContextManager[Connection]:
        """Return a read-only transaction that sees every row, also if it has to wait for an ALTER TABLE."""
        return self.dialect.read_snapshot(engine, self.from_clause)

    def pages(self, engine: Engine, page_size: int = PAGE_ROWS) -> Generator[list[SourceRow], None, None]:
        """Yield every row once, in pages; we may write between two of them."""
        with self.snapshot(engine) as connection:
            if self.dialect.reads_beside_writes(connection):
                yield from self.read_pages(connection, page_size)
                return
        yield from self.read_keyset_pages(partial(self.snapshot, engine), page_size)

    def read_pages(
        self, connection: Connection, page_size: int = PAGE_ROWS
    ) -> Generator[list[SourceRow], None, None]:
        """Yield every row once, in one streaming pass, in the order in which the database gives them."""
        for rows in cut_fetched(self._streamed(connection, self._page_query()), page_size):
            yield self._page(rows)

    def read_keyset_pages(
        self, open_connection: OpenConnection, page_size: int = PAGE_ROWS
    ) -> Iterator[list[SourceRow]]:
        """Yield every row once, by key, each page in a short transaction of its own."""

        def read(connection: Connection, page: Select[Any], last_key: str | None) -> Sequence[Row[Any]]:
            with closing(self._streamed(connection, page)) as found:
                return next(cut_fetched(fetched_after(last_key, found), page_size), [])

        for rows in self._keyset_pages(open_connection, self._page_query(), page_size, read):
            yield self._page(rows)
        if any(column.is_nullable for column in self.key_columns):
            with open_connection() as connection:
                self.rows_without_key += self._count(connection, not_(self._has_key()))

    def row_keys(self, engine: Engine) -> Iterator[list[str]]:
        """Yield the row key of every row, in pages, without the other columns; we may write in between."""
        with self.snapshot(engine) as connection:
            if self.dialect.reads_beside_writes(connection):
                yield from self.read_row_keys(connection)
                return
        opened, query = partial(self.snapshot, engine), self._key_query()
        for rows in self._keyset_pages(opened, query, PAGE_ROWS, self._read_keys):
            yield list(map(_FIRST, rows))

    def read_row_keys(self, connection: Connection) -> Iterator[list[str]]:
        """Yield the row key of every row, in pages, in one streaming pass."""
        streamed = {"stream_results": True}
        with (
            self._settled(connection),
            connection.execute(self._key_query(), execution_options=streamed) as result,
        ):
            while rows := result.fetchmany(PAGE_ROWS):
                yield [row[0] for row in rows if row[0] is not None]

    def _read_keys(
        self, connection: Connection, page: Select[Any], last_key: str | None
    ) -> Sequence[Row[Any]]:
        with self._settled(connection):
            return list(rows_after(last_key, connection.execute(page).all()))

    def _key_query(self) -> Select[Any]:
        row_key = self.dialect.row_key(self.key_columns, self.from_clause)
        return select(row_key.label("dedup_0")).select_from(self.from_clause).where(self.condition)

    def _has_key(self) -> ColumnElement[bool]:
        return and_(*(self.from_clause.c[c.name].is_not(None) for c in self.key_columns))

    def _keyset_pages(
        self, open_connection: OpenConnection, query: Select[Any], page_size: int, read: ReadPage
    ) -> Iterator[Sequence[Row[Any]]]:
        """Yield the rows of a query whose first column is the row key, by key, page after page."""
        keys = [self.from_clause.c[c.name] for c in self.key_columns]
        row_key = self.dialect.bytewise(self.dialect.row_key(self.key_columns, self.from_clause))
        query = query.add_columns(*keys).where(self._has_key()).order_by(*keys, row_key)
        last_row: Row[Any] | None = None
        while True:
            page = query.limit(page_size)  # without it SQLite would sort all rows where no index serves
            if last_row is not None:
                # The last row comes once more, and any other row of the same key with it.
                page = query.limit(page_size + 1).where(
                    from_row(keys, last_row[-len(keys) :], row_key, last_row[0])
                )
            with open_connection() as connection:
                rows = read(connection, page, None if last_row is None else last_row[0])
            if not rows:
                return
            last_row = rows[-1]
            yield rows

    def read_rows(self, connection: Connection, row_keys: Iterable[str]) -> Iterator[SourceRow]:
        """Yield the rows whose row key is, character by character, one of these; each once.

        They are found by the user's index; a row that is gone is left out.

        Raises:
            RowKeyError: two rows have the same key.
            EvaluationError: the database cannot evaluate the `where` for one of them.
        """
        for batch in self.batches(dict.fromkeys(row_keys)):
            with self._settled(connection), evaluation_errors(self.dialect.translate_error):
                raw, _ = self._noted(connection.execute(self._by_key, {KEY_LIST: batch}).all())
            # A key that somebody has typed may lead to a row and not be its key, as 007 to the row 7.
            asked = (row.dedup_asked for row in raw if row[0] is not None)
            found = zip(self._source_rows(raw), asked, strict=True)
            rows = [row for row, row_key in found if row.row_key == row_key]
            refuse_repeated([row.row_key for row in rows])
            yield from rows

    @cached_property
    def _by_key(self) -> Select[Any]:
        """The query for rows by their keys. It is built once: that takes longer than to read some rows."""
        wanted = self.dialect.key_list()
        matches = self.dialect.key_matches(self.key_columns, self.from_clause, wanted.c.row_key)
        query = self._query().add_columns(wanted.c.row_key.label("dedup_asked"))
        return query.select_from(wanted.join(self.from_clause, matches))

    def batches(self, items: Iterable[_Item], most: int = _KEYS_A_QUERY) -> Iterator[list[_Item]]:
        """Cut items, one for each row, into as many at a time as rows of this table may be in memory."""
        return self._read_size.batches(items, most)

    def rows_within(self, characters: int) -> int:
        """Estimate how many rows of this table have so many characters together, by the rows read so far."""
        return self._read_size.rows_within(characters)

    def require_gone(self, connection: Connection, row_keys: Iterable[str]) -> None:
        """Check that rows which `read_rows` did not find are really not there.

        Only where the database may fail to find a value by its text is the whole table read for it.

        Raises:
            RowKeyError: a row is there, and is not found by its key.
        """
        if not self.doubtful:
            return
        row_key = self.dialect.row_key(self.key_columns, self.from_clause)
        for batch in batches(row_keys, _KEYS_A_QUERY):
            query = select(row_key).select_from(self.from_clause).where(self.condition)
            wanted = self.dialect.key_list(batch)
            is_wanted = self.dialect.bytewise(row_key).in_(select(self.dialect.bytewise(wanted.c.row_key)))
            with self._settled(connection):
                found = connection.execute(query.where(is_wanted).limit(1)).scalar()
            if found is not None:
                raise self._not_found_by_key(found)

    def rows_from(self, connection: Connection, records: Sequence[Mapping[str, object]]) -> list[SourceRow]:
        """Return records that are not stored (yet) as rows without a key; a column that one leaves out is
        NULL.

        Args:
            connection: leads to the user's rows; only a type that the database alone knows is asked for.
            records: column name -> value; UnknownNameError for a column that the table does not have.
        """
        for record in records:
            check_names(record, self.table)
        columns = [*self.value_columns, *(c for _, c in self.within)]
        with self._settled(connection):
            stored = self.dialect.as_stored(
                connection, [(c, r.get(c.name)) for r in records for c in columns]
            )
        count = len(self.value_columns)
        records_stored = (stored[i : i + len(columns)] for i in range(0, len(stored), len(columns)))
        return [
            self.texts.row(RawRow(None, None, values[:count], values[count:])) for values in records_stored
        ]

    def row_key_of(self, given: RowKey) -> str:
        """Return the row key that a caller means; InvalidArgumentError where the table can have no such
        key."""
        return given_key(self.key_columns, given, self.dialect.key_value_text)

    def _settled(self, connection: Connection) -> AbstractContextManager[None]:
        return self.dialect.settled(connection) if self._depends_on_session else nullcontext()

    def _count(self, connection: Connection, which: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(self.from_clause).where(self.condition, which)
        return int(connection.execute(query).scalar_one())

    def _page_query(self) -> Select[Any]:
        """Build the query for pages; behind the columns of `_query` it tells whether a row is found by its
        key."""
        is_found = and_(true(), *(condition for _, condition in self.doubtful))
        return self._query().add_columns(is_found.label("dedup_is_found"))

    def _page(self, rows: Sequence[Row[Any]]) -> list[SourceRow]:
        if self.doubtful:
            for row in rows:
                if row[0] is not None and not row.dedup_is_found:
                    raise self._not_found_by_key(row[0])
        return self._source_rows(rows)

    def _not_found_by_key(self, row_key: str) -> RowKeyError:
        columns = ", ".join(f"{c.name!r} ({c.type_name or 'no type'})" for c, _ in self.doubtful)
        return RowKeyError(
            "the database does not find a row by its own key {row_key!r}, made of column {columns}: "
            "name another key, or leave such rows out by `where`",
            row_key=row_key[:40],
            columns=columns,
        )

    def _streamed(self, connection: Connection, query: Select[Any]) -> Generator[Fetched, None, None]:
        """Yield the rows of a query as they are fetched, no more than a page of them at once."""
        streamed = {"stream_results": True}
        with self._settled(connection), connection.execute(query, execution_options=streamed) as result:
            while rows := result.fetchmany(self._read_size.rows):
                yield self._noted(rows)

    def _noted(self, rows: Sequence[Row[Any]]) -> Fetched:
        lengths = _raw_lengths(rows)
        self._read_size.note(len(rows), sum(lengths))
        return rows, lengths

    def _query(self) -> Select[Any]:
        values = [self.dialect.readable(c, self.from_clause.c[c.name]) for c in self.value_columns]
        within = [self.dialect.readable(c, self.from_clause.c[c.name]) for _, c in self.within]
        order = self.order_column
        chosen: list[ColumnElement[Any]] = [
            self.dialect.row_key(self.key_columns, self.from_clause),
            null() if order is None else self.dialect.readable(order, self.from_clause.c[order.name]),
            *values,
            *within,
        ]
        # Labels of our own: two of the user's names may differ in nothing that a result keeps apart.
        return select(*(c.label(f"dedup_{i}") for i, c in enumerate(chosen))).where(self.condition)

    def _source_rows(self, rows: Sequence[Sequence[Any]]) -> list[SourceRow]:
        found = [row for row in rows if row[0] is not None]
        self.rows_without_key += len(rows) - len(found)
        return self.texts.rows(found)


def _raw_lengths(rows: Sequence[Row[Any]]) -> list[int]:
    """Count the characters of rows as they came; values that are no texts are short and are left out."""
    lengths = [0] * len(rows)
    for values in zip(*rows, strict=True):
        kinds = set(map(type, values))
        if kinds <= {str}:
            lengths = list(map(add, lengths, map(len, values)))
        elif any(issubclass(kind, _TEXTS) for kind in kinds):
            own = (len(value) if isinstance(value, _TEXTS) else 0 for value in values)
            lengths = list(map(add, lengths, own))
    return lengths


def _conditions(where: str | None) -> tuple[Any, Any]:
    """Return the user's own SQL in parentheses and bare; its colons name no parameters, its comments end."""
    if where is None or not where.strip():
        return true(), true()
    escaped = where.replace(":", r"\:")
    return text(f"({escaped}\n)"), text(f"{escaped}\n")


def _quoted(name: str) -> quoted_name:
    return quoted_name(name, quote=True)
