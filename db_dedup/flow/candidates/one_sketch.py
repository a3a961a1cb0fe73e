"""Which rows share enough hashes with a single sketch, by the lists of rows that have its hashes.

Most rows of these lists share no more than a set phrase, which is too little, and for most the size of their
sketch is in memory. So they are counted by one kernel, and only those that share enough are sorted.
"""

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates.postings import Postings
from db_dedup.flow.candidates.sketch_sizes import ID_BITS, UNKNOWN_SIZE, SizeTable
from db_dedup.flow.candidates.sketches import compiled_least_in_common, least_in_common

UNREAD_SIZE: Final = -1
"""The size of a row whose size is stored, but not in memory yet."""

_ENOUGH: Final = np.uint8(255)
"""The count of a row that shares a hash of which one is enough; also where the count of others ends."""

_MORE_THAN_ENOUGH: Final = 1 << 16


class CountedRows(NamedTuple):
    """r rows that share enough hashes with a sketch, as far as their sizes tell.

    Attributes:
        ids: int64[r], ascending.
        common: int64[r], how many hashes each row shares; more than any sketch has where one of them is
            enough, or where they are 255 or more.
        sizes: int64[r], how many hashes each row has; `UNREAD_SIZE`, or `UNKNOWN_SIZE` if its own row tells.
    """

    ids: NDArray[np.int64]
    common: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        size: int,
        postings: Postings,
        repeated: NDArray[np.uint32],
        is_changed: NDArray[np.bool_],
        table: SizeTable,
    ) -> Self:
        """Count the hashes that each row shares with a sketch.

        Some rows are returned that share too few: a row may have two entries for one hash, and only entries
        tell how often it has a hash that the sketch has more than once. One of these is taken for enough.

        Args:
            size: how many different hashes the sketch has.
            postings: of these hashes; rows are ids.
            repeated: uint32[n], hashes that the sketch has more than once: of different values of 64 bits.
            is_changed: bool[e], which entries are of a row whose size may be another one than in the table.
                If one entry of a row is, all of them must be.
            table: sizes that are in memory.
        """
        rows = postings.rows.astype(np.int64)
        are_enough = postings.hashes & np.uint64(1) == 0
        if repeated.size:
            are_enough |= np.isin(postings.hashes, repeated)
        ids, common, sizes, is_other = _count_shared(
            size, are_enough, postings.ends, rows, is_changed, table.sizes, table.slots, ID_BITS
        )
        others = np.flatnonzero(is_other)
        if others.size:
            more, places = np.unique(rows[others], return_inverse=True)
            of_entries = np.repeat(are_enough, np.diff(postings.ends, prepend=0))
            worth = np.where(of_entries[others], _MORE_THAN_ENOUGH, 1)
            own_sizes = np.empty(more.size, np.int64)
            own_sizes[places] = np.where(is_changed[others], UNKNOWN_SIZE, UNREAD_SIZE)
            ids, sizes = np.concatenate([ids, more]), np.concatenate([sizes, own_sizes])
            common = np.concatenate([common, np.bincount(places, worth).astype(np.int64)])
        order = np.argsort(ids)
        return cls(ids[order], common[order], sizes[order])


@kernel
def _count_shared(size, are_enough, ends, ids, is_changed, table, slots, id_bits):
    """Return the rows that share enough hashes by the sizes in a table.

    Args:
        size: how many hashes the sketch has.
        are_enough: bool[s], of which lists one hash is enough.
        ends: int64[s], where each list ends.
        ids: int64[e], the rows of all lists.
        is_changed: bool[e], which entries are not counted.
        table: uint8[t], how many hashes rows have, one part after another; 0 where this is not known.
        slots: int64[p], the place of each part in the table, -1 for a part that is not there.
        id_bits: a part is of so many consecutive ids, as a power of two.

    Returns:
        (int64[r] ids in any order, int64[r] common hashes, int64[r] sizes, bool[e] which entries are not
        counted here, or are of rows that are not in the table).
    """
    counts, is_other = zeros(table.size, np.uint8), is_changed.copy()
    found, common = empty(ids.size, np.int64), empty(ids.size, np.int64)
    sizes = empty(ids.size, np.int64)
    begin, r = np.int64(0), np.int64(0)
    for each in range(ends.size):
        for i in range(begin, ends[each]):
            place = _place_of(ids[i], slots, id_bits)
            if place < 0 or is_changed[i]:
                is_other[i] = True
            elif are_enough[each]:
                counts[place] = _ENOUGH
            elif counts[place] < _ENOUGH:
                counts[place] += 1
        begin = ends[each]
    for i in range(ids.size):
        if is_other[i]:
            continue
        place = _place_of(ids[i], slots, id_bits)
        count, own_size = np.int64(counts[place]), np.int64(table[place])
        if count == 0:
            continue
        counts[place] = 0  # the row is not looked at again
        if own_size == 0 or count == _ENOUGH or count >= compiled_least_in_common(min(size, own_size)):
            found[r], sizes[r] = ids[i], own_size
            common[r] = _MORE_THAN_ENOUGH if count == _ENOUGH else count
            r += 1
    return found[:r].copy(), common[:r].copy(), sizes[:r].copy(), is_other


@inner
def _place_of(row_id, slots, id_bits):
    """Return where the size of a row is in the table, -1 if it is not there."""
    part = row_id >> id_bits
    if part >= slots.size or slots[part] < 0:
        return np.int64(-1)
    return (slots[part] << id_bits) + (row_id & ((np.int64(1) << id_bits) - 1))


def share_enough(size: int, common: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return bool[r]: which rows share enough hashes with a sketch.

    Args:
        size: how many hashes the sketch has.
        common: int64[r], as in `CountedRows`.
        sizes: int64[r], how many hashes each row has.
    """
    are_enough: NDArray[np.bool_] = common >= least_in_common(np.minimum(size, sizes))
    return are_enough
