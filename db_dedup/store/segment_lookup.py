"""Look up hashes in the segments, and what is stored beside the entries of the rows found."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import CompoundSelect, Connection, LargeBinary, Select, bindparam, literal, select

from db_dedup.dialects.batches import number_batches
from db_dedup.dialects.sessions import AS_BYTES
from db_dedup.flow.candidates.changed_rows import ChangedRows, changed_pieces_of
from db_dedup.flow.candidates.postings import Postings, joined_postings
from db_dedup.flow.candidates.segments import PackedParts, find_postings, pieces_of
from db_dedup.flow.candidates.set_pieces import bounds_in, places_in_piece, set_pieces_of
from db_dedup.flow.candidates.sketch_sizes import SizeTable, size_pieces_of, sizes_in
from db_dedup.flow.compare.feature_sets import PackedSets
from db_dedup.flow.threads import in_threads
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.piece_memory import PieceMemory
from db_dedup.store.segments import Generation, find_generation, is_of_segments, translate_damage
from db_dedup.store.set_memory import SET_BYTES, SetMemory
from db_dedup.store.single_memory import SingleMemory

_PIECES_A_QUERY: Final = 960
_SET_PIECES_A_QUERY: Final = 256  # some 20 MB
_KEPT_BYTES: Final = 128 * 2**20
"""Of pieces that a search keeps for its next range: those of 2,000 changes among a million rows are some 60
MB."""
_MARGIN: Final = 1.2
_NO_PIECES: Final = np.empty(0, np.int64)
_NO_POSTINGS: Final = Postings(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint32))

IdRange = tuple[int, int]
"""The first and the last id of rows that are wanted."""

ALL_IDS: Final[IdRange] = (-(2**62), 2**62)


class Frequency:
    """How often something is found, and into how many parts to divide a search so that each finds few.

    A search that finds too much for the memory begins again with a smaller part. Who knows the frequency of
    the last search begins with parts of the right size.
    """

    def __init__(self) -> None:
        """Know nothing; then a search begins with the whole."""
        self._share = 0.0

    def note(self, found: int, asked: int) -> None:
        """Remember that so many were found where so many were asked."""
        self._share = found / max(1, asked)

    def parts(self, asked: int, most: int) -> int:
        """Return into how many parts to divide so many that are asked, to find fewer than `most` in each."""
        return 1 + int(asked * self._share * _MARGIN) // most


class IndexMemory:
    """What look-ups read of the index and use again: its generation, sizes of sketches, sets of features.

    Attributes:
        threads: in which look-ups of many hashes compute.
        generation: that of the last look-up; None before the first one.
        pieces: the pieces with entries that were read, where a worker keeps them.
        sets: the sets of features that were read.
        single: the single entries, where a worker keeps them.
        entries: how many entries a hash had in the last look-up of several sketches.
        pairs: how many of the pairs of one of these and a row shared enough hashes.
    """

    def __init__(self, set_bytes: int = SET_BYTES, piece_bytes: int = 0, threads: int = 1) -> None:
        """Make an empty one, whose sets and pieces take at most about so many bytes each."""
        self.threads = threads
        self.generation: Generation | None = None
        self.pieces = PieceMemory(piece_bytes)
        self.sets = SetMemory(set_bytes)
        self.single = SingleMemory()
        self.entries, self.pairs = Frequency(), Frequency()
        self._size_pieces: dict[int, bytes] = {}
        self._size_table: tuple[int, dict[int, bytes], SizeTable] | None = None

    def size_pieces(self, generation: Generation) -> dict[int, bytes]:
        """Return the pieces with sizes of a generation, which never change; forget those of another one."""
        if generation != self.generation:
            if self.generation is not None:
                self.single.clear()  # they have been folded
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
        generation: whose segments have them; None if none is active.
        changed: which of the rows have changed since.
    """

    postings: Postings
    generation: Generation | None
    changed: ChangedRows


class SegmentSearch:
    """A look-up of some hashes, which may be made for one range of rows after another.

    A generation is deleted after another one has become active. So what was read of it is complete if it is
    active still. What was read of one that is not is not used any more, since no other has its number.
    """

    def __init__(
        self,
        connection: Connection,
        store: FingerprintStore,
        hashes: NDArray[np.uint32],
        memory: IndexMemory,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            connection: to read through.
            store: the table and recipe.
            hashes: uint32[n], ascending and distinct.
            memory: of former look-ups. The generation that was active then is tried first.
        """
        self._connection, self._store, self._hashes, self._memory = connection, store, hashes, memory
        self._generation = memory.generation
        # What has no room in the memory, for the next range: numbers of pieces, and their parts.
        self._kept, self._kept_bytes = list[tuple[NDArray[np.int64], PackedParts]](), 0

    def find(self, ids: IdRange = ALL_IDS, most: int | None = None) -> Found:
        """Return the rows that have the hashes.

        Args:
            ids: only of these rows.
            most: stop after so many entries; None returns all.

        Raises:
            DedupError: a piece is damaged.
        """
        if self._generation is None:
            self._generation = find_generation(self._connection, self._store)
        while (generation := self._generation) is not None:
            postings = self._postings(generation, ids, most)
            # Read after the entries, since a row may change in between.
            changed = _read_if_active(self._connection, self._store, generation, postings.rows)
            if changed is not None:
                return Found(postings, generation, changed)
            self._generation = find_generation(self._connection, self._store)
            self._kept, self._kept_bytes = [], 0
        return Found(_NO_POSTINGS, None, ChangedRows({}))

    def _postings(self, generation: Generation, ids: IdRange, most: int | None) -> Postings:
        limit = np.iinfo(np.int64).max if most is None else most
        pieces = np.unique(pieces_of(self._hashes, generation.piece_count))
        # Some pieces are searched while the next ones are read.
        threads = self._memory.threads if pieces.size > _PIECES_A_QUERY else 1
        found, count = [_NO_POSTINGS], 0

        def find(parts: PackedParts) -> Postings:
            return find_postings(parts, self._hashes, *ids, limit).narrowed()

        parts = self._parts(generation, pieces)
        with translate_damage(), closing(in_threads(threads, find, parts)) as lists:
            for some in lists:
                found.append(some)
                count += some.rows.size
                if count >= limit:
                    break
        return joined_postings(found)

    def _parts(self, generation: Generation, pieces: NDArray[np.int64]) -> Iterator[PackedParts]:
        """Yield the parts of some pieces after others: first of those that are in memory."""
        memory = self._memory.pieces
        are_here = memory.have(generation, pieces)
        for some in _divided(pieces[are_here]):
            yield memory.parts_of(some)
        kept = self._kept.copy()
        for _, parts in kept:
            yield parts
        pieces = np.setdiff1d(pieces[~are_here], np.concatenate([_NO_PIECES, *(own for own, _ in kept)]))
        for some in _divided(pieces):
            of, parts = self._read(generation, some)
            if not memory.add(generation, some, of, parts):
                self._keep(some, parts)
            yield parts

    def _keep(self, pieces: NDArray[np.int64], parts: PackedParts) -> None:
        if self._kept_bytes + parts.packed.size <= _KEPT_BYTES:
            self._kept.append((pieces, parts))
            self._kept_bytes += parts.packed.size

    def _read(
        self, generation: Generation, pieces: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], PackedParts]:
        """Return (int64[p] the piece of each part, p parts) of some pieces."""
        parameters = {"generation": generation.number, "pieces": pieces.tolist()}
        found = self._connection.execute(_pieces_query(self._store), parameters).all()
        of = np.fromiter((piece for piece, _ in found), np.int64, len(found))
        return of, PackedParts.of([bytes(part) for _, part in found])


def _divided(pieces: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for first in range(0, pieces.size, _PIECES_A_QUERY):
        yield pieces[first : first + _PIECES_A_QUERY]


def read_changed_rows(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: NDArray[np.integer[Any]]
) -> ChangedRows:
    """Return which of some rows, and perhaps of others, have changed since the segments were written.

    Raises:
        DedupError: a piece is damaged.
    """
    numbers = changed_pieces_of(ids) if ids.size else []
    with translate_damage():
        return ChangedRows(read_beside(connection, store, generation, numbers))


def _read_if_active(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: NDArray[np.integer[Any]]
) -> ChangedRows | None:
    """Return the same as `read_changed_rows`; None if another generation is active after that, or none is.

    By one statement, unless the ids are in very many pieces: each statement costs a check a round trip.
    """
    if not ids.size:
        return ChangedRows({}) if find_generation(connection, store) == generation else None
    *others, last = number_batches(changed_pieces_of(ids), _PIECES_A_QUERY)
    found = dict[int, bytes]()
    for some in others:
        found |= read_beside(connection, store, generation, some)
    parameters = {"generation": generation.number, "pieces": last}
    found |= {
        number: bytes(packed)
        for number, packed in connection.execute(_beside_and_active_query(store), parameters)
    }
    if found.pop(generation.number, None) is None:
        return None
    with translate_damage():
        return ChangedRows(found)


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
    known |= read_beside(connection, store, generation, missing)
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
    for some in number_batches(memory.sets.wanted(generation.number, ids), _SET_PIECES_A_QUERY):
        memory.sets.add(generation.number, read_beside(connection, store, generation, some))
        if memory.sets.is_full:
            break
    return memory.sets.sets_of(generation.number, ids)


def read_all_sets(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: NDArray[np.int64]
) -> dict[int, bytes]:
    """Return id -> the set in the segments, empty if there is none, of rows whose ids are ascending."""
    pieces = set_pieces_of(ids)
    packed = read_beside(connection, store, generation, np.unique(pieces).tolist())
    found: dict[int, bytes] = {}
    places = places_in_piece(ids).tolist()
    bounds = {piece: bounds_in(content) for piece, content in packed.items()}
    for row_id, piece, place in zip(ids.tolist(), pieces.tolist(), places, strict=True):
        begins, sets = bounds[piece]
        found[row_id] = sets[begins[place] : begins[place + 1]]
    return found


def read_beside(
    connection: Connection, store: FingerprintStore, generation: Generation, pieces: Sequence[int]
) -> dict[int, bytes]:
    """Return pieces that are stored beside the entries, empty where one is not there."""
    found = dict.fromkeys(pieces, b"")
    for some in number_batches(pieces, _PIECES_A_QUERY):
        parameters = {"generation": generation.number, "pieces": some}
        found |= {
            piece: bytes(packed) for piece, packed in connection.execute(_pieces_query(store), parameters)
        }
    return found


@lru_cache(maxsize=64)
def _pieces_query(store: FingerprintStore) -> Select[Any]:
    """Build a query for (number of the piece, packed) of the parts of some pieces.

    Cached: building it takes as long as the database needs for some pieces.
    """
    c = store.tables.sketch_segment.c
    own = is_of_segments(store), c.generation == bindparam("generation")
    query = select(c.piece, c.packed).where(*own)
    return store.dialect.each_of(query, c.piece, "pieces").execution_options(**AS_BYTES)


@lru_cache(maxsize=64)
def _beside_and_active_query(store: FingerprintStore) -> CompoundSelect[Any]:
    """Build a query for pieces with negative numbers, and for the number of the active generation.

    That number is positive, and comes in the column of the pieces' numbers.
    """
    c = store.tables.sketch_index.c
    active = select(c.generation, literal(b"", LargeBinary)).where(
        c.table_id == store.table_id, c.recipe == store.recipe
    )
    return _pieces_query(store).union_all(active).execution_options(**AS_BYTES)
