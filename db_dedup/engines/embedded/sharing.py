"""Find the stored rows whose sketches may share enough hashes with some others.

The index has 32 bits of each hash, and hashes that a row had before it changed. So every row that shares
enough hashes is found, and a few others. The caller compares the sketches of the texts, which it reads
anyway, by `are_candidates`. Most rows share no more than a set phrase. Those that cannot be similar enough by
the sets of their features are left out before anything else is read of them.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.engines.embedded.segment_sets import SegmentSets
from db_dedup.flow.candidates.one_sketch import share_enough
from db_dedup.flow.candidates.postings import sharing_pairs
from db_dedup.flow.candidates.segments import narrowed
from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE
from db_dedup.flow.candidates.sketches import Sketches, share_enough_each
from db_dedup.flow.compare.feature_sets import AskedFeatures, may_be_alike
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import OwnEntries
from db_dedup.store.segment_lookup import IndexMemory
from db_dedup.store.segments import Generation, translate_damage
from db_dedup.store.sketch_lookup import (
    Sharing,
    SharingWithMany,
    SharingWithOne,
    find_sharing,
    read_sketched,
)
from db_dedup.store.sketch_memory import StoredSketches

_PAIRS_A_PIECE: Final = 2_000_000
_ROWS_A_PIECE: Final = 500_000
_NOTHING: Final = np.empty(0, np.int64)


class SharingRows(NamedTuple):
    """p pairs of an asked sketch and a row whose sketch may share enough hashes with it, each pair once.

    Attributes:
        which: int64[p], positions of the asked sketches.
        ids: int64[p], of the rows. A row may have changed, have lost its sketch or be gone, and its id may be
            that of a row of another table or recipe now.
        generation: of the segments that were read; None if there are none.
    """

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    generation: Generation | None


def find_sharing_rows(
    connection: Connection,
    store: FingerprintStore,
    asked: Sketches,
    features: AskedFeatures | None = None,
    memory: IndexMemory | None = None,
    own: OwnEntries | None = None,
) -> Iterator[SharingRows]:
    """Yield the stored rows that may share enough hashes with some sketches, in parts, ordered by row id.

    There is at least one part.

    Args:
        connection: to read through.
        store: whose rows.
        asked: n sketches.
        features: of the n rows that have these sketches; rows that are certainly no duplicates are left out.
            None leaves out none.
        memory: of former look-ups; None if there were none.
        own: takes what the segments have for the rows of the sketches themselves.
    """
    hashes = narrowed(asked)
    memory = memory or IndexMemory()
    of_one = asked.counts.size == 1
    compared, found = 0, 0
    for sharing in find_sharing(connection, store, asked.values, memory, of_one=of_one, own=own):
        if not sharing.ids.size:
            yield SharingRows(_NOTHING, _NOTHING, sharing.generation)
        for first in range(0, sharing.ids.size, _ROWS_A_PIECE):
            end = min(first + _ROWS_A_PIECE, sharing.ids.size)
            counts, sketched = _known_counts(connection, store, sharing, first, end, memory)
            for pairs in _pairs_in_pieces(hashes, sharing, counts, first, end, memory):
                found += pairs[0].size
                yield _sharing_rows(connection, store, sharing, sketched, pairs, features, memory)
            compared += asked.counts.size * (end - first)
    if not of_one:
        memory.pairs.note(found, compared)


def _known_counts(
    connection: Connection,
    store: FingerprintStore,
    sharing: Sharing,
    first: int,
    end: int,
    memory: IndexMemory,
) -> tuple[NDArray[np.int64], StoredSketches]:
    """Return (int64[r] the sizes of the rows' sketches, what was read of those that only their rows tell).

    Args:
        connection: to read through.
        store: whose rows.
        sharing: r rows that share some hashes.
        first: the sizes of the rows from this one on are read.
        end: those of the rows before this one.
        memory: of former look-ups.
    """
    counts = sharing.counts.copy()
    unknown = first + np.flatnonzero(counts[first:end] == UNKNOWN_SIZE)
    sketched = read_sketched(connection, store, sharing.ids[unknown], memory.single.rows)
    counts[np.searchsorted(sharing.ids, sketched.ids)] = sketched.counts
    return counts, sketched


def _pairs_in_pieces(
    hashes: Sketches,
    sharing: SharingWithMany | SharingWithOne,
    counts: NDArray[np.int64],
    first: int,
    end: int,
    memory: IndexMemory,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the pairs of an asked sketch and a row that share enough hashes, by ascending ranges of rows."""
    if isinstance(sharing, SharingWithOne):
        are_enough = share_enough(hashes.values.size, sharing.common[first:end], counts[first:end])
        places = first + np.flatnonzero(are_enough)
        yield np.zeros(places.size, np.int64), places
        return
    parts = memory.pairs.parts(hashes.counts.size * (end - first), _PAIRS_A_PIECE)
    width = 1 + (end - first) // parts
    while first < end:
        rows = first, min(first + width, end)
        most = _PAIRS_A_PIECE if width > 1 else None  # one row has at most a pair for each asked sketch
        pairs = sharing_pairs(hashes, sharing.postings, counts, *rows, most, memory.threads)
        if most is not None and pairs[0].size > most:
            width //= 2
            continue
        yield pairs
        first += width


def _sharing_rows(
    connection: Connection,
    store: FingerprintStore,
    sharing: Sharing,
    sketched: StoredSketches,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    features: AskedFeatures | None,
    memory: IndexMemory,
) -> SharingRows:
    """Return the rows that share enough hashes and may be duplicates.

    Most rows share no more than a set phrase, which is not enough. So the rows are read after the hashes are
    counted, but for those whose number of hashes only their own row tells. Of the others those are read whose
    set of features is not in memory.

    Args:
        connection: to read through.
        store: whose rows.
        sharing: rows that share some hashes.
        sketched: those of them that were read already.
        pairs: int64[p] positions of asked sketches, int64[p] positions of rows that share enough with them.
        features: of the asked rows.
        memory: of former look-ups.
    """
    which, places = pairs
    has_set = np.zeros(sharing.ids.size, np.bool_)
    if features is not None and sharing.generation is not None:
        sets = SegmentSets(connection, store, sharing.generation, features, memory)
        may, has_set = sets.compare(which, places, sharing.ids, sharing.counts != UNKNOWN_SIZE)
        which, places = which[may], places[may]
    ids, is_kept = sharing.ids[places], has_set[places]
    is_kept[~is_kept] = _may_be_alike_by_rows(
        connection, store, sketched, which[~is_kept], ids[~is_kept], features, memory
    )
    return SharingRows(which[is_kept], ids[is_kept], sharing.generation)


def _may_be_alike_by_rows(
    connection: Connection,
    store: FingerprintStore,
    sketched: StoredSketches,
    which: NDArray[np.int64],
    ids: NDArray[np.int64],
    features: AskedFeatures | None,
    memory: IndexMemory,
) -> NDArray[np.bool_]:
    """Return bool[p]: which pairs the sets beside the fingerprints allow; none of a row without a sketch.

    Args:
        connection: to read through.
        store: whose rows.
        sketched: those of the rows that were read already.
        which: int64[p], positions of the asked sketches.
        ids: int64[p], of the rows.
        features: of the asked rows.
        memory: of former look-ups.
    """
    distinct, may = np.unique(ids), np.zeros(ids.size, np.bool_)
    is_read = sketched.having(distinct)
    for stored in (sketched.of(distinct[is_read]), read_sketched(connection, store, distinct[~is_read])):
        are_here = stored.having(ids)
        may[are_here] = True
        if features is not None:
            rows = np.searchsorted(stored.ids, ids[are_here])
            with translate_damage():
                own = may_be_alike(features, which[are_here], rows, stored.sets, memory.threads)
            may[are_here] = own
    return may


def are_candidates(
    sketches: Sketches,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    distances: NDArray[np.integer[Any]],
    radius: int,
) -> NDArray[np.bool_]:
    """Return bool[p]: which pairs some candidate generator returns, by fingerprints and sketches of the rows.

    Args:
        sketches: of all rows.
        left: int32[p], positions of sketches.
        right: int32[p], the same.
        distances: int[p], of the fingerprints, in bits.
        radius: of the rule.
    """
    are_candidates: NDArray[np.bool_] = distances <= radius
    others = np.flatnonzero(~are_candidates)
    are_candidates[others] = share_enough_each(sketches, left[others], right[others])
    return are_candidates
