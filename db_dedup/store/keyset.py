"""Reading by key, page after page: each page begins at the last row of the one before."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Text, and_, literal, or_, tuple_
from sqlalchemy.types import NullType

from db_dedup.flow.rows.keys import repeated_key

Fetched = tuple[Sequence[Row[Any]], list[int]]
"""Rows as they were fetched together, and how many characters each has."""

_ONE_AND_ITS_TWIN: Final = 2


def from_row(
    keys: Sequence[ColumnElement[Any]],
    last: Sequence[Any],
    row_key: ColumnElement[str],
    last_key: str,
) -> ColumnElement[bool]:
    """Return the condition for a row and all that come after it.

    Several columns are one row value, which an index serves as a whole. Rows whose keys are equal under the
    columns' collations are in the order of their row keys.

    Args:
        keys: the columns of the key.
        last: their values in the row.
        row_key: the expression of the row key.
        last_key: the row key of the row.
    """
    values = [literal(value, NullType()) for value in last]
    key, value = (keys[0], values[0]) if len(keys) == 1 else (tuple_(*keys), tuple_(*values))
    return and_(key >= value, or_(key > value, row_key >= literal(last_key, Text())))


def rows_after(last_key: str | None, rows: Iterable[Row[Any]]) -> Iterator[Row[Any]]:
    """Return the rows after the one of this row key, with which they begin if it is still there.

    Args:
        last_key: of the last row of the page before; None for the first page.
        rows: their row key comes first.

    Raises:
        RowKeyError: another row has the same key as that one.
    """
    found = iter(rows)
    first = next(found, None)
    if first is not None and last_key is not None and first[0] == last_key:
        first = next(found, None)
        if first is not None and first[0] == last_key:
            raise repeated_key(last_key)
    if first is not None:
        yield first
        yield from found


def fetched_after(last_key: str | None, fetched: Iterable[Fetched]) -> Iterator[Fetched]:
    """Return what `rows_after` leaves of rows that come some at a time; all but the first ones stay."""
    found = iter(fetched)
    rows, lengths = next(found, ([], []))
    if len(rows) < _ONE_AND_ITS_TWIN:
        more = next(found, ([], []))
        rows, lengths = [*rows, *more[0]], [*lengths, *more[1]]
    left = list(rows_after(last_key, rows))
    yield left, lengths[len(lengths) - len(left) :]
    yield from found
