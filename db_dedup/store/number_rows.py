"""Rows of numbers, of which many come in one text where the driver takes each value apart in Python."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select

from db_dedup.dialects.base import Dialect
from db_dedup.store.streams import parts_of

_TEXTS_A_PART: Final = 100


def number_rows(
    connection: Connection,
    dialect: Dialect,
    query: Select[Any],
    row_id: ColumnElement[int],
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query, in any order. A truth value may come as a number.

    Args:
        connection: to read through.
        dialect: of the database.
        query: of numbers and NULL alone.
        row_id: a column of ids, positive and not NULL; few rows have the same id.
        parameters: of the query.
    """
    joined = dialect.rows_as_json(query, row_id)
    if joined is None:
        yield from connection.execute(query, parameters).all()
    else:
        texts = connection.execute(joined, parameters).all()
        yield from _taken_apart(connection, query, row_id, texts, parameters)


def stream_number_rows(
    connection: Connection,
    dialect: Dialect,
    query: Select[Any],
    row_id: ColumnElement[int],
    rows: int,
    is_ordered: bool = False,
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query like `number_rows`, but without all of them in memory.

    Args:
        connection: to read through. No other statement may run on it before the last row.
        dialect: of the database.
        query: of numbers and NULL alone, without parameters.
        row_id: a column of ids, positive and not NULL; few rows have the same id.
        rows: how many are in memory at a time, where they are not joined.
        is_ordered: whether rows come in ascending order of the first two columns, of which `row_id` is the
            first, and which together tell them apart. The rows of texts that the server has cut come after
            all others, in the same order among themselves.
    """
    joined = dialect.rows_as_json(query, row_id)
    if joined is None:
        if is_ordered:
            query = query.order_by(*query.selected_columns[:2])
        for part in parts_of(connection, query, rows):
            yield from part
    else:
        texts = (text for part in parts_of(connection, joined, _TEXTS_A_PART) for text in part)
        yield from _taken_apart(connection, query, row_id, texts, None, is_ordered)


def _taken_apart(
    connection: Connection,
    query: Select[Any],
    row_id: ColumnElement[int],
    texts: Iterable[Sequence[Any]],
    parameters: Mapping[str, Any] | None,
    is_ordered: bool = False,
) -> Iterator[Sequence[Any]]:
    """Yield the rows of all texts. The server cuts one that is longer than it may send, and only warns.

    The order of the rows in a text, or of some ids, is that of the server's plan.
    """

    def in_order(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        return sorted(rows, key=itemgetter(0, 1)) if is_ordered else rows

    cut: list[tuple[int, int]] = []
    for first, last, count, text in texts:
        if text.count("]") == count:
            yield from in_order(json.loads(f"[{text}]"))
        else:
            cut.append((first, last))
    for first, last in cut:
        yield from in_order(connection.execute(query.where(row_id.between(first, last)), parameters).all())
