"""The segments of the index of sketches: packed entries, written by scans and by the worker's folding.

A generation is one complete set of segments of a table's recipe. One row of `sketch_index` names the
generation that counts; what is stored of others is being written, or is left over. Its number is a random
one, so that two of them are never confused, whatever was rolled back or removed in between.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, and_, bindparam, delete, insert, select, update
from sqlalchemy.sql import ColumnElement

from db_dedup.dialects.batches import number_batches
from db_dedup.errors import DedupError
from db_dedup.flow.candidates.postings import Postings, joined_postings
from db_dedup.flow.candidates.segments import (
    Entries,
    Part,
    count_pieces,
    find_postings,
    pieces_of,
    unpack,
)
from db_dedup.flow.candidates.set_pieces import bounds_in, places_in_piece, set_pieces_of
from db_dedup.flow.candidates.sketch_sizes import SizeTable, size_pieces_of, sizes_in
from db_dedup.flow.compare.feature_sets import PackedSets
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.set_memory import SET_BYTES, SetMemory

_PIECES_A_QUERY: Final = 960
_MOST_GENERATION: Final = 2**31 - 1
_COLUMNS: Final = ("table_id", "recipe", "generation", "piece", "part", "packed")

NO_ENTRIES: Final = Entries(np.empty(0, np.uint32), np.empty(0, np.int64))
_NO_POSTINGS: Final = Postings(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint32))

IdRange = tuple[int, int]
"""The first and the last id of rows that are wanted."""

ALL_IDS: Final[IdRange] = (-(2**62), 2**62)


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


class IndexMemory:
    """What look-ups have read of the index and use again: which generation counted, and sizes of sketches and
    sets of features.

    Attributes:
        generation: that of the last look-up; None before the first one.
        sets: the sets of features that were read.
    """

    def __init__(self, set_bytes: int = SET_BYTES) -> None:
        """Make an empty one, whose sets take at most about so many bytes."""
        self.generation: Generation | None = None
        self.sets = SetMemory(set_bytes)
        self._size_pieces: dict[int, bytes] = {}
        self._size_table: tuple[int, dict[int, bytes], SizeTable] | None = None

    def size_pieces(self, generation: Generation) -> dict[int, bytes]:
        """Return the pieces with sizes of a generation, which never change; forget those of another one."""
        if generation != self.generation:
            self.generation, self._size_pieces = generation, {}
        return self._size_pieces

    def size_table(self, generation: Generation) -> SizeTable:
        """Return the sizes that were read of a generation in one array."""
        pieces, made = self.size_pieces(generation), self._size_table
        if made is None or made[1] is not pieces or made[0] != len(pieces):
            made = self._size_table = len(pieces), pieces, SizeTable.of(dict(pieces))
        return made[2]


@dataclass(frozen=True)
class Found:
    """What a look-up found.

    Attributes:
        postings: the ids of the rows that have the hashes; in half of the memory where they have 32 bits.
        generation: whose segments have them; None if none counts.
    """

    postings: Postings
    generation: Generation | None


def new_generation(entry_count: int) -> Generation:
    """Return a generation, of which nothing is stored yet, for so many entries."""
    return Generation(1 + secrets.randbelow(_MOST_GENERATION), count_pieces(entry_count), entry_count)


def find_generation(connection: Connection, store: FingerprintStore) -> Generation | None:
    """Return the generation that counts; None if no segments have been written."""
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
    """Let this generation count from the end of the transaction on."""
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
    """Let no generation count; its segments stay until `drop_segments`."""
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
    is_other = _is_of(store)
    if kept is not None:
        is_other = and_(is_other, table.c.generation != kept)
    first = select(table.c.generation, table.c.piece).where(is_other)
    row = connection.execute(first.order_by(table.c.generation, table.c.piece).limit(1)).first()
    if row is None:
        return False
    one = and_(_is_of(store), table.c.generation == row[0], table.c.piece < int(row[1]) + most)
    connection.execute(delete(table).where(one))
    return True


def _is_of(store: FingerprintStore) -> ColumnElement[bool]:
    table = store.tables.sketch_segment
    return and_(table.c.table_id == store.table_id, table.c.recipe == store.recipe)


def find_in_segments(
    connection: Connection,
    store: FingerprintStore,
    hashes: NDArray[np.uint32],
    ids: IdRange = ALL_IDS,
    most: int | None = None,
    memory: IndexMemory | None = None,
) -> Found:
    """Find the rows that have some hashes.

    Args:
        connection: to read through.
        store: the table and recipe.
        hashes: uint32[n], ascending and distinct.
        ids: only of these rows.
        most: stop after so many entries; None returns all.
        memory: of former look-ups. The generation that counted then is tried first.

    Raises:
        DedupError: a piece is damaged.
    """
    generation = memory.generation if memory is not None else None
    if generation is None:
        generation = find_generation(connection, store)
    while generation is not None:
        found = _find(connection, store, generation, hashes, ids, most)
        if isinstance(found, Postings):
            return Found(found, generation)
        generation = found.now
    return Found(_NO_POSTINGS, None)


def read_sizes(
    connection: Connection,
    store: FingerprintStore,
    generation: Generation,
    ids: NDArray[np.int64],
    memory: IndexMemory,
) -> NDArray[np.int64]:
    """Return int64[n]: how many hashes each row has in the segments, `UNKNOWN_SIZE` where it is not stored.

    A generation that is deleted meanwhile, or was written by an earlier version, has no sizes.

    Args:
        connection: to read through.
        store: the table and recipe.
        generation: whose segments.
        ids: int64[n], of the rows, ascending.
        memory: what was read before; the rest is added.
    """
    known = memory.size_pieces(generation)
    missing = [piece for piece in np.unique(size_pieces_of(ids)).tolist() if piece not in known]
    known |= _read_beside(connection, store, generation, missing)
    return sizes_in(known, ids)


def read_sets(
    connection: Connection,
    store: FingerprintStore,
    generation: Generation,
    ids: NDArray[np.int64],
    memory: IndexMemory,
) -> PackedSets:
    """Return the sets of the rows' features in the segments, as far as they are in memory now.

    Args:
        connection: to read through.
        store: the table and recipe.
        generation: whose segments.
        ids: int64[n], of the rows, ascending.
        memory: what was read before; some more is added.
    """
    wanted = memory.sets.wanted(generation.number, ids)
    if wanted:
        memory.sets.add(generation.number, _read_beside(connection, store, generation, wanted))
    return memory.sets.sets_of(generation.number, ids)


def read_all_sets(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: NDArray[np.int64]
) -> dict[int, bytes]:
    """Return id -> the set in the segments, empty if there is none, of rows whose ids are ascending."""
    pieces = set_pieces_of(ids)
    packed = _read_beside(connection, store, generation, np.unique(pieces).tolist())
    found: dict[int, bytes] = {}
    places = places_in_piece(ids).tolist()
    bounds = {piece: bounds_in(content) for piece, content in packed.items()}
    for row_id, piece, place in zip(ids.tolist(), pieces.tolist(), places, strict=True):
        begins, sets = bounds[piece]
        found[row_id] = sets[begins[place] : begins[place + 1]]
    return found


def _read_beside(
    connection: Connection, store: FingerprintStore, generation: Generation, pieces: Sequence[int]
) -> dict[int, bytes]:
    """Return pieces that are stored beside the entries, empty where one is not there."""
    found = dict.fromkeys(pieces, b"")
    for some in number_batches(pieces, _PIECES_A_QUERY):
        parameters = {"generation": generation.number, "pieces": some}
        found |= {
            piece: bytes(packed) for piece, packed in connection.execute(_beside_query(store), parameters)
        }
    return found


class _Switched(NamedTuple):
    """Another generation counts now; None: none does."""

    now: Generation | None


def _find(
    connection: Connection,
    store: FingerprintStore,
    generation: Generation,
    hashes: NDArray[np.uint32],
    ids: IdRange,
    most: int | None,
) -> Postings | _Switched:
    """Return the rows that have some hashes, or which other generation counts.

    A generation is deleted after another one counts. So what a statement reads of it is complete if the same
    statement finds that it counts.
    """
    found, count = [_NO_POSTINGS], 0
    limit = np.iinfo(np.int64).max if most is None else most
    pieces = np.unique(pieces_of(hashes, generation.piece_count)).tolist()
    for some in number_batches(pieces, _PIECES_A_QUERY):
        parameters = {"generation": generation.number, "pieces": some}
        rows = connection.execute(_pieces_query(store), parameters).all()
        if not rows or rows[0][0] != generation.number:
            return _Switched(Generation(*map(int, rows[0][:3])) if rows else None)
        packed = [bytes(row[3]) for row in rows if row[3] is not None]
        with translate_damage():
            lists = find_postings(packed, hashes, *ids, limit - count)
        found.append(lists.narrowed())
        count += lists.rows.size
        if count >= limit:
            break
    return joined_postings(found)


@lru_cache(maxsize=64)
def _pieces_query(store: FingerprintStore) -> Select[Any]:
    """Build a query for (number, pieces, entries of the generation that counts; a part of these pieces).

    There is a row without a part if there are no parts. Cached: building it takes as long as the database
    needs for some pieces.
    """
    index, c = store.tables.sketch_index, store.tables.sketch_segment.c
    are_wanted = and_(_is_of(store), _are_pieces(store))
    return (
        select(index.c.generation, index.c.piece_count, index.c.entry_count, c.packed)
        .select_from(index.outerjoin(store.tables.sketch_segment, are_wanted))
        .where(index.c.table_id == store.table_id, index.c.recipe == store.recipe)
    )


@lru_cache(maxsize=64)
def _beside_query(store: FingerprintStore) -> Select[Any]:
    c = store.tables.sketch_segment.c
    return select(c.piece, c.packed).where(_is_of(store), _are_pieces(store))


def _are_pieces(store: FingerprintStore) -> ColumnElement[bool]:
    """Return the condition that a part is of one of the pieces, and of the generation, of the parameters."""
    c = store.tables.sketch_segment.c
    return and_(c.generation == bindparam("generation"), store.dialect.is_one_of(c.piece, "pieces"))


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
        .where(_is_of(store), c.generation == generation.number, c.piece >= first, c.piece < last)
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
