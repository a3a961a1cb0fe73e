"""The segments of the index of sketches: packed entries, written by scans and by the worker's folding.

A generation is one complete set of segments of a table's recipe. One row of `sketch_index` names the active
generation; what is stored of others is being written, or is left over. The number of a generation is random,
so that two generations are never confused, whatever was rolled back or removed in between.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Select, and_, delete, insert, select, update
from sqlalchemy.sql import ColumnElement

from db_dedup.errors import DedupError
from db_dedup.flow.candidates.segments import (
    Entries,
    Part,
    count_pieces,
    hashes_of,
    unpack,
)
from db_dedup.store.fingerprints import FingerprintStore

_PIECES_A_QUERY: Final = 960
_MOST_GENERATION: Final = 2**31 - 1
_COLUMNS: Final = ("table_id", "recipe", "generation", "piece", "part", "packed")

NO_ENTRIES: Final = Entries(np.empty(0, np.uint32), np.empty(0, np.int64))


@dataclass(frozen=True)
class Generation:
    """A set of segments.

    Attributes:
        number: tells it from others.
        piece_count: into how many pieces its entries are cut.
        entry_count: how many entries it has.
    """

    number: int
    piece_count: int
    entry_count: int


def new_generation(entry_count: int) -> Generation:
    """Return a generation, of which nothing is stored yet, for so many entries."""
    return Generation(1 + secrets.randbelow(_MOST_GENERATION), count_pieces(entry_count), entry_count)


def find_generation(connection: Connection, store: FingerprintStore) -> Generation | None:
    """Return the active generation; None if no segments have been written."""
    row = connection.execute(_generation_query(store)).one_or_none()
    return None if row is None else Generation(int(row[0]), int(row[1]), int(row[2]))


@lru_cache(maxsize=64)
def _generation_query(store: FingerprintStore) -> Select[Any]:
    c = store.tables.sketch_index.c
    return select(c.generation, c.piece_count, c.entry_count).where(
        c.table_id == store.table_id, c.recipe == store.recipe
    )


def put_parts(
    connection: Connection, store: FingerprintStore, generation: Generation, parts: Iterable[Part]
) -> None:
    """Write parts of a generation."""
    own = (store.table_id, store.recipe, generation.number)
    rows = ((*own, part.piece, part.part, part.packed) for part in parts)
    store.dialect.bulk_insert(connection, store.tables.sketch_segment, _COLUMNS, rows)


def switch_generation(connection: Connection, store: FingerprintStore, generation: Generation) -> None:
    """Make this generation active when the transaction commits."""
    table = store.tables.sketch_index
    values = {
        "generation": generation.number,
        "piece_count": generation.piece_count,
        "entry_count": generation.entry_count,
    }
    own = {"table_id": store.table_id, "recipe": store.recipe}
    is_own = and_(table.c.table_id == store.table_id, table.c.recipe == store.recipe)
    if find_generation(connection, store) is None:
        connection.execute(insert(table).values(**own, **values))
    else:
        connection.execute(update(table).where(is_own).values(**values))


def drop_index(connection: Connection, store: FingerprintStore) -> None:
    """Deactivate the index; the segments stay until `drop_segments`."""
    table = store.tables.sketch_index
    connection.execute(
        delete(table).where(table.c.table_id == store.table_id, table.c.recipe == store.recipe)
    )


def drop_segments(connection: Connection, store: FingerprintStore, kept: int | None, most: int) -> bool:
    """Delete segments of all generations but one.

    Args:
        connection: in a transaction.
        store: the table and recipe.
        kept: number of the generation that is kept; None deletes all.
        most: delete at most about so many pieces.

    Returns:
        Whether there may be more.
    """
    table = store.tables.sketch_segment
    is_other = is_of_segments(store)
    if kept is not None:
        is_other = and_(is_other, table.c.generation != kept)
    first = select(table.c.generation, table.c.piece).where(is_other)
    row = connection.execute(first.order_by(table.c.generation, table.c.piece).limit(1)).first()
    if row is None:
        return False
    one = and_(is_of_segments(store), table.c.generation == row[0], table.c.piece < int(row[1]) + most)
    connection.execute(delete(table).where(one))
    return True


def is_of_segments(store: FingerprintStore) -> ColumnElement[bool]:
    """Return the condition that a piece is of the table's recipe."""
    table = store.tables.sketch_segment
    return and_(table.c.table_id == store.table_id, table.c.recipe == store.recipe)


def read_pieces(
    connection: Connection, store: FingerprintStore, generation: Generation, first: int, last: int
) -> Entries:
    """Return all entries of the pieces first to last - 1, by ascending hash, then by ascending row.

    Raises:
        DedupError: a piece is damaged.
    """
    c = store.tables.sketch_segment.c
    query = (
        select(c.packed)
        .where(is_of_segments(store), c.generation == generation.number, c.piece >= first, c.piece < last)
        .order_by(c.piece, c.part)
    )
    packed = [bytes(row[0]) for row in connection.execute(query)]
    with translate_damage():
        return unpack(packed)


def joined(parts: Sequence[Entries]) -> Entries:
    """Return the entries of all parts, of which there is at least one."""
    return Entries(
        np.concatenate([part.hashes for part in parts]), np.concatenate([part.ids for part in parts])
    )


def entries_of(ids: Sequence[int], sketches: Sequence[bytes]) -> Entries:
    """Return the entries of the rows of these ids, each with its sketch."""
    # Writable: for a read-only array numba would compile the kernel once more.
    values = np.frombuffer(bytearray(b"".join(sketches)), np.uint64)
    counts = [len(sketch) // values.itemsize for sketch in sketches]
    return Entries(hashes_of(values), np.repeat(np.array(ids, np.int64), counts))


@contextmanager
def translate_damage() -> Iterator[None]:
    """Raise DedupError where what is read of the index is damaged."""
    try:
        yield
    except ValueError as error:
        raise DedupError(
            "the stored index of sketches is damaged ({reason}): run `db-dedup scan TABLE --rebuild`",
            reason=error,
        ) from error
