"""Reads of our tables, all at once or page by page."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select

from db_dedup.dialects.base import Dialect
from db_dedup.store.number_rows import number_rows, stream_number_rows
from db_dedup.store.streams import parts_of

_ROWS_A_PART: Final = 10_000
_ROWS_A_PAGE: Final = 20_000


@dataclass(frozen=True)
class Reader:
    """How to read many rows of our tables.

    Attributes:
        open: gives a connection for the length of a block.
        page_rows: read so many rows at a time and let the connection go in between; None reads all in one
            query. In SQLite nobody can commit while a read goes on.
        is_own: `open` gives a connection that nobody else uses, so that the rows of one query can come in
            parts, without all of them in memory.
    """

    open: Callable[[], AbstractContextManager[Connection]]
    page_rows: int | None = None
    is_own: bool = False

    @classmethod
    def of(cls, connection: Connection) -> "Reader":
        """Return a reader that reads all at once through a connection that stays open."""
        return cls(lambda: nullcontext(connection))

    @classmethod
    def for_dialect(
        cls, dialect: Dialect, open_connection: Callable[[], AbstractContextManager[Connection]]
    ) -> "Reader":
        """Return a reader that reads in pages where an open read blocks writers.

        Args:
            dialect: of the database.
            open_connection: returns a connection that is used by this reader only, without a transaction.
        """
        return cls(open_connection, _ROWS_A_PAGE if dialect.capabilities.one_writer else None, is_own=True)

    def rows(self, query: Select[Any], row_id: ColumnElement[int]) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query.

        Args:
            query: its first column is `row_id`, which is unique, positive, and not NULL.
            row_id: what pages are cut by.
        """
        if self.page_rows is None:
            with self.open() as connection:
                if self.is_own:
                    for part in parts_of(connection, query, _ROWS_A_PART):
                        yield from part
                else:
                    yield from connection.execute(query).all()
            return
        last, page = 0, query.order_by(row_id).limit(self.page_rows)
        while True:
            with self.open() as connection:
                rows = connection.execute(page.where(row_id > last)).all()
            yield from rows
            if len(rows) < self.page_rows:
                return
            last = rows[-1][0]

    def number_rows(
        self, dialect: Dialect, query: Select[Any], row_id: ColumnElement[int]
    ) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query for numbers and NULL alone, in any order; else as `rows`.

        A truth value may come as a number.
        """
        if self.page_rows is not None:
            yield from self.rows(query, row_id)
            return
        with self.open() as connection:
            if self.is_own:
                yield from stream_number_rows(connection, dialect, query, row_id, _ROWS_A_PART)
            else:
                yield from number_rows(connection, dialect, query, row_id)
