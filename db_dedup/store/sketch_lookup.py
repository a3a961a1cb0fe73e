"""Look up the rows that have some hashes, in both levels of the index of sketches (`sketches.py`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, bindparam, func, select

from db_dedup.dialects.batches import number_batches
from db_dedup.dialects.sessions import AS_BYTES
from db_dedup.flow.candidates.changed_rows import ChangedRows
from db_dedup.flow.candidates.one_sketch import UNREAD_SIZE, CountedRows
from db_dedup.flow.candidates.postings import Postings, joined_postings
from db_dedup.flow.candidates.segments import Entries, hashes_of
from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE, SizeTable
from db_dedup.flow.compare.feature_sets import PackedSets
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import OwnEntries
from db_dedup.store.segment_lookup import ALL_IDS, Frequency, IdRange, IndexMemory, SegmentSearch, read_sizes
from db_dedup.store.segments import Generation
from db_dedup.store.single_entries import read_entries
from db_dedup.store.sketch_memory import StoredSketches, StoredSketchMemory
from db_dedup.store.sketches import has_sketch, set_generation

_ENTRIES_A_PIECE = 12_000_000  # of segments: some 150 MB
_ENTRIES_OF_ONE = 1_000_000  # for one sketch, whose entries take more room each
_SINGLE_ENTRIES_A_PIECE = 500_000
_TIMES_AS_MANY_FROM_MEMORY = 4  # they are no rows of a result, which take more room
_IDS_A_QUERY = 1000
_VALUE_BYTES = 8


@dataclass(frozen=True)
class Sharing:
    """The r rows that have some hashes.

    Attributes:
        ids: int64[r], ascending. A row may have no sketch any more.
        counts: int64[r], how many hashes each row's sketch has; `UNKNOWN_SIZE` where only its own row tells.
        generation: of the segments; None if there are none.
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    generation: Generation | None


@dataclass(frozen=True)
class SharingWithMany(Sharing):
    """Rows that have hashes of several sketches.

    Attributes:
        postings: for each hash of 32 bits the positions of its rows among the r. A row may be there twice, or
            may have had the hash before.
    """

    postings: Postings


@dataclass(frozen=True)
class SharingWithOne(Sharing):
    """Rows that have hashes of a single sketch.

    Attributes:
        common: int64[r], as in `CountedRows`.
    """

    common: NDArray[np.int64]


def find_sharing(
    connection: Connection,
    store: FingerprintStore,
    values: NDArray[np.uint64],
    memory: IndexMemory,
    *,
    of_one: bool = False,
    own: OwnEntries | None = None,
) -> Iterator[SharingWithMany | SharingWithOne]:
    """Find the rows that have these values, of one sketch or of several; all values of a row come together.

    A phrase that a whole table shares has an entry for each row. Where the entries are too many for the
    memory, they are read by ranges of row ids; each range unpacks the segments again.

    Args:
        connection: to read through.
        store: whose rows.
        values: uint64[n], of sketches.
        memory: of former look-ups.
        of_one: the values are those of one sketch. Then rows that share too few of them are left out, as far
            as the memory tells the sizes of their sketches.
        own: takes what the segments have for the rows of the sketches themselves.

    Yields:
        Rows whose ids are above those before.
    """
    wanted = _Wanted.of(values, min(_ENTRIES_OF_ONE, _ENTRIES_A_PIECE) if of_one else _ENTRIES_A_PIECE)
    # First the single ones: when these are folded, they are in segments before they are deleted here.
    single = _single_entries(connection, store, wanted, None, _SINGLE_ENTRIES_A_PIECE, memory)
    one = wanted if of_one else None
    search = SegmentSearch(connection, store, wanted.hashes, memory)
    frequency = Frequency() if of_one else memory.entries
    parts = frequency.parts(wanted.hashes.size, wanted.entries_a_piece)
    found = None
    if single is not None and parts == 1:
        found = _entries(connection, store, wanted, single, None, search, memory)
    if found is not None:
        frequency.note(found.packed.rows.size, wanted.hashes.size)
        yield _with_sizes(connection, store, found, one, memory, own)
        return
    row = store.tables.fingerprint
    highest = int(connection.execute(select(func.max(row.c.id))).scalar_one() or 0)
    first, width, count = 0, 1 + highest // max(2, parts), 0
    while first <= highest:
        found = _entries(connection, store, wanted, single, (first, first + width - 1), search, memory)
        if found is None:
            width //= 2
            continue
        count += found.packed.rows.size
        yield _with_sizes(connection, store, found, one, memory, own)
        first += width
        if found.is_small(wanted.entries_a_piece):
            width *= 2
    frequency.note(count, wanted.hashes.size)


class _Entries(NamedTuple):
    """The entries of some hashes: single ones, and those of the segments of a generation, by row id."""

    single: Entries
    packed: Postings
    generation: Generation | None
    changed: ChangedRows

    def is_small(self, most: int) -> bool:
        """Return whether those of twice as many rows probably fit into memory, too: `most` of segments."""
        return 4 * self.single.ids.size < _SINGLE_ENTRIES_A_PIECE and 4 * self.packed.rows.size < most


class _Wanted(NamedTuple):
    """Values of sketches as single entries have them, and as segments do.

    Attributes:
        values: different ones, as signed numbers.
        hashes: uint32[n], their different hashes, ascending.
        repeated: uint32[m], the hashes that several of the values have.
        entries_a_piece: of the segments so many entries may be in memory at once.
    """

    values: list[int]
    hashes: NDArray[np.uint32]
    repeated: NDArray[np.uint32]
    entries_a_piece: int

    @classmethod
    def of(cls, values: NDArray[np.uint64], entries_a_piece: int) -> "_Wanted":
        distinct = np.unique(values)
        hashes, counts = np.unique(hashes_of(distinct), return_counts=True)
        return cls(distinct.view(np.int64).tolist(), hashes, hashes[counts > 1], entries_a_piece)


def _entries(
    connection: Connection,
    store: FingerprintStore,
    wanted: _Wanted,
    single: Entries | None,
    ids: IdRange | None,
    search: SegmentSearch,
    memory: IndexMemory,
) -> _Entries | None:
    """Return the entries of these values.

    Args:
        connection: to read through.
        store: whose rows.
        wanted: values.
        single: the single entries of these values, of all rows; None where they are too many.
        ids: only of rows from the first to the second id. One row alone never has too many entries.
        search: for these values in the segments.
        memory: of former look-ups.

    Returns:
        None where there are too many.
    """
    is_one_row = ids is not None and ids[0] == ids[1]
    if single is None:
        most = None if is_one_row else _SINGLE_ENTRIES_A_PIECE
        single = _single_entries(connection, store, wanted, ids, most, memory)
    elif ids is not None:
        single = single.of_rows(*ids)
    if single is None:
        return None
    most = None if is_one_row else wanted.entries_a_piece + 1
    found = search.find(ids or ALL_IDS, most)
    if most is not None and found.postings.rows.size >= most:
        return None
    return _Entries(single, found.postings, found.generation, found.changed)


def _single_entries(
    connection: Connection,
    store: FingerprintStore,
    wanted: _Wanted,
    ids: IdRange | None,
    most: int | None,
    memory: IndexMemory,
) -> Entries | None:
    """Return the single entries of these values, from memory if they are there; None if `most` or more."""
    if not memory.single.is_loaded:
        return read_entries(connection, store, wanted.values, ids, most)
    found = memory.single.find(wanted.hashes, ids or ALL_IDS)
    return None if most is not None and found.ids.size >= _TIMES_AS_MANY_FROM_MEMORY * most else found


def _with_sizes(
    connection: Connection,
    store: FingerprintStore,
    found: _Entries,
    one: _Wanted | None,
    memory: IndexMemory,
    own: OwnEntries | None,
) -> SharingWithMany | SharingWithOne:
    """Return the rows of some entries, with the size of each row's sketch.

    The entries may be those of one sketch, which has these values.

    A row without single entries whose bit is not set either has not changed since the segments were written,
    so that its size is the one beside them, or shares none of these hashes any more.
    """
    if own is not None:
        own.note(found.packed, found.generation)
    postings = joined_postings([Postings.of(*found.single).narrowed(), found.packed])
    if one is not None:
        return _with_sizes_of_one(connection, store, found, postings, one, memory)
    ids, postings = postings.numbered()
    if found.generation is None:
        counts = np.full(ids.size, UNKNOWN_SIZE, np.int64)
    else:
        counts = read_sizes(connection, store, found.generation, ids, memory)
        counts[postings.rows[: found.single.ids.size]] = UNKNOWN_SIZE  # single entries come first
        counts[found.changed.are(ids)] = UNKNOWN_SIZE
    return SharingWithMany(ids, counts, found.generation, postings)


def _with_sizes_of_one(
    connection: Connection,
    store: FingerprintStore,
    found: _Entries,
    postings: Postings,
    one: _Wanted,
    memory: IndexMemory,
) -> SharingWithOne:
    is_changed = found.changed.are(postings.rows)
    if found.single.ids.size:
        is_changed |= np.isin(postings.rows, found.single.ids)
    table = SizeTable.of({}) if found.generation is None else memory.size_table(found.generation)
    rows = CountedRows.of(one.hashes.size, postings, one.repeated, is_changed, table)
    unread = np.flatnonzero(rows.sizes == UNREAD_SIZE)
    if found.generation is None:
        rows.sizes[unread] = UNKNOWN_SIZE
    elif unread.size:
        rows.sizes[unread] = read_sizes(connection, store, found.generation, rows.ids[unread], memory)
    return SharingWithOne(rows.ids, rows.sizes, found.generation, rows.common)


def read_sketched(
    connection: Connection,
    store: FingerprintStore,
    ids: NDArray[np.int64],
    memory: StoredSketchMemory | None = None,
) -> StoredSketches:
    """Return those of some rows that have a sketch; meanwhile a row may have lost its one.

    Args:
        connection: to read through.
        store: whose rows.
        ids: int64[n], ascending and distinct.
        memory: of rows that were read before; the others are added. None: all are read.
    """
    if memory is None:
        return _read_sketched(connection, store, ids)
    memory.trim()
    memory.add(_read_sketched(connection, store, ids[~memory.find(ids).having(ids)]))
    return memory.find(ids)


def _read_sketched(connection: Connection, store: FingerprintStore, ids: NDArray[np.int64]) -> StoredSketches:
    # A query of its own: a planner that does not know how few entries a value has would rather join whole
    # tables.
    query = _rows_query(store)
    found: list[Sequence[Any]] = []
    for some in number_batches(ids.tolist(), _IDS_A_QUERY):
        found += connection.execute(query, {"ids": some}).all()
    found.sort(key=itemgetter(0))
    columns = [*zip(*found, strict=True)] or [(), (), ()]
    of_rows, sizes = (np.fromiter(column, np.int64, len(found)) for column in columns[:2])
    return StoredSketches(of_rows, sizes // _VALUE_BYTES, PackedSets.of(columns[2]))


def have_sets_in(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return bool[n]: which rows have the set of their present features beside these segments, now active.

    Args:
        connection: to read through.
        store: whose rows.
        generation: of the segments.
        ids: int64[n], of the rows.
    """
    query, found = _settled_query(store), list[int]()
    for some in number_batches(ids.tolist(), _IDS_A_QUERY):
        parameters = {"ids": some, "generation": generation.number}
        found += connection.execute(query, parameters).scalars()
    return np.isin(ids, found)


@lru_cache(maxsize=64)
def _settled_query(store: FingerprintStore) -> Select[Any]:
    c = store.tables.fingerprint.c
    is_in_it = set_generation(store) == bindparam("generation")
    return select(c.id).where(store.dialect.is_one_of(c.id, "ids"), is_in_it)


@lru_cache(maxsize=64)
def _rows_query(store: FingerprintStore) -> Select[Any]:
    """Build a query for (id, bytes of the sketch, set of features) of rows with a sketch.

    Cached: building it takes as long as the database needs for some rows.
    """
    c = store.tables.fingerprint.c
    size = func.coalesce(func.length(c.sketch), c.sketch_size * _VALUE_BYTES)
    are_wanted = store.dialect.is_one_of(c.id, "ids"), store.mine, has_sketch(store)
    return select(c.id, size, c.feature_set).where(*are_wanted).execution_options(**AS_BYTES)
