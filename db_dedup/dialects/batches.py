"""Items on their way into the database, cut into statements that every server accepts.

A statement is bounded twice: by its number of items and by the bytes that they take in it. MySQL and MariaDB
refuse a statement past `max_allowed_packet`, which is 1 MB on some servers; PostgreSQL refuses a message past
1 GB.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import LargeBinary, String, Table

from db_dedup.records.pages import take_lists

_Item = TypeVar("_Item")

Rows = Iterable[Sequence[Any]]
"""Driver-ready values: fingerprints signed, digests as bytes."""

STATEMENT_BYTES: Final = 512 * 1024
"""Of one statement, as `bytes_of` estimates them. Text in which every character is escaped twice takes up to
seven quarters of the estimate, which still fits into 1 MB."""

_CHARACTER_BYTES: Final = 4
_HEX_DIGITS_A_BYTE: Final = 2
_OTHER_BYTES: Final = 32
"""A number, a time, a NULL, and the comma and quotes around a value."""


def bytes_of(item: Any) -> int:
    """Estimate how many bytes a value, or a row of values, takes in a statement at most."""
    match item:
        case str():
            return _CHARACTER_BYTES * len(item) + _OTHER_BYTES
        case bytes() | bytearray() | memoryview():
            return _HEX_DIGITS_A_BYTE * len(item) + _OTHER_BYTES
        case tuple():
            return sum(map(bytes_of, item))
    return _OTHER_BYTES


def batches(
    items: Iterable[_Item],
    count: int,
    size_of: Callable[[Any], int] = bytes_of,
    most_bytes: int = STATEMENT_BYTES,
) -> Iterator[list[_Item]]:
    """Yield lists of at most `count` items and `most_bytes` bytes, in their order; each has at least one
    item.

    Args:
        items: the items.
        count: how many a list holds at most.
        size_of: bytes of an item in a statement.
        most_bytes: how many bytes a list holds at most; an item that has more by itself is a list of its own.
    """
    batch: list[_Item] = []
    used = 0
    for item in items:
        size = size_of(item)
        if batch and (len(batch) == count or used + size > most_bytes):
            yield batch
            batch, used = [], 0
        batch.append(item)
        used += size
    if batch:
        yield batch


def number_batches(numbers: Sequence[_Item], count: int) -> Iterator[Sequence[_Item]]:
    """Yield at most `count` numbers, or other short items, at a time, in their order; none is measured."""
    for first in range(0, len(numbers), count):
        yield numbers[first : first + count]


def row_batches(
    table: Table, columns: Sequence[str], rows: Rows, count: int, most_bytes: int = STATEMENT_BYTES
) -> Iterator[list[Sequence[Any]]]:
    """Yield rows of these columns of a table as `batches` does; only columns of varying size are measured."""
    varying = [i for i, name in enumerate(columns) if isinstance(table.c[name].type, String | LargeBinary)]
    fixed = _OTHER_BYTES * len(columns)
    if not varying:
        most_rows = min(count, max(1, most_bytes // fixed))
        return take_lists(rows, lambda: most_rows)
    return batches(rows, count, lambda row: fixed + sum(bytes_of(row[i]) for i in varying), most_bytes)
