"""Which rows share enough hashes with a single sketch, by the lists of rows that have its hashes.

Most rows of these lists share no more than a set phrase, which is too little, and for most the size of their
sketch is in memory. So they are counted and left out by one kernel, before they are sorted.
"""

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow.candidates.postings import Postings
from db_dedup.flow.candidates.sketch_sizes import ID_BITS, UNKNOWN_SIZE, SizeTable
from db_dedup.flow.candidates.sketches import compiled_least_in_common, least_in_common

UNREAD_SIZE: Final = -1
"""The size of a row whose size is stored, but not in memory yet."""

_ENOUGH: Final = np.uint8(255)
"""What a byte counts for an even hash, of which one is enough, and for so many others or more."""

_MORE_THAN_ENOUGH: Final = 1 << 16


class CountedRows(NamedTuple):
    """r rows that share enough hashes with a sketch, as far as their sizes tell.

    Attributes:
        ids: int64[r], ascending.
        common: int64[r], how many hashes each row shares; more than any sketch has where these are enough for
            every size.
        sizes: int64[r], how many hashes each row has; `UNREAD_SIZE`, or `UNKNOWN_SIZE` if its own row tells.
    """

    ids: NDArray[np.int64]
    common: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, size: int, postings: Postings, is_changed: NDArray[np.bool_], table: SizeTable) -> Self:
        """Count the hashes that each row shares with a sketch.

        A row may be counted twice for a hash, so that some rows are returned that share a few hashes less.

        Args:
            size: how many hashes the sketch has.
            postings: of these hashes; rows are ids.
            is_changed: bool[e], of which entries the row may have another size than the table tells: all
                entries of such a row.
            table: sizes that are in memory.
        """
        rows = postings.rows.astype(np.int64)
        ids, common, sizes, is_left = _count_shared(
            size, postings.hashes, postings.ends, rows, is_changed, table.sizes, table.slots, ID_BITS
        )
        left = np.flatnonzero(is_left)
        if left.size:
            more, places = np.unique(rows[left], return_inverse=True)
            worth = np.where(postings.entry_hashes[left] & np.uint64(1), 1, _MORE_THAN_ENOUGH)
            own_sizes = np.empty(more.size, np.int64)
            own_sizes[places] = np.where(is_changed[left], UNKNOWN_SIZE, UNREAD_SIZE)
            ids, sizes = np.concatenate([ids, more]), np.concatenate([sizes, own_sizes])
            common = np.concatenate([common, np.bincount(places, worth).astype(np.int64)])
        order = np.argsort(ids)
        return cls(ids[order], common[order], sizes[order])


@kernel
def _count_shared(size, hashes, ends, ids, is_changed, table, slots, id_bits):
    """Return the rows that share enough hashes by the sizes in a table.

    Args:
        size: how many hashes the sketch has.
        hashes: uint64[s], of each list; the sketch has all of them.
        ends: int64[s], where each list ends.
        ids: int64[e], the rows of all lists.
        is_changed: bool[e], which entries are left out.
        table: uint8[t], how many hashes rows have, one part after another; 0 where this is not known.
        slots: int64[p], the place of each part in the table, -1 for a part that is not there.
        id_bits: a part is of so many consecutive ids, as a power of two.

    Returns:
        (int64[r] ids in any order, int64[r] common hashes, int64[r] sizes, bool[e] which entries are left
        out, or are of rows that are not in the table).
    """
    counts, is_left = np.zeros(table.size, np.uint8), is_changed.copy()
    found, common = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64)
    sizes = np.empty(ids.size, np.int64)
    begin, r = np.int64(0), np.int64(0)
    for each in range(hashes.size):
        # A single even hash is enough.
        is_enough = hashes[each] & np.uint64(1) == np.uint64(0)
        for i in range(begin, ends[each]):
            place = _place_of(ids[i], slots, id_bits)
            if place < 0 or is_changed[i]:
                is_left[i] = True
            elif is_enough:
                counts[place] = _ENOUGH
            elif counts[place] < _ENOUGH:
                counts[place] += 1
        begin = ends[each]
    for i in range(ids.size):
        if is_left[i]:
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
    return found[:r].copy(), common[:r].copy(), sizes[:r].copy(), is_left


@inner
def _place_of(row_id, slots, id_bits):
    """Return where the size of a row is in the table, -1 if it is not there."""
    part = row_id >> id_bits
    if part >= slots.size or slots[part] < 0:
        return np.int64(-1)
    return (slots[part] << id_bits) + (row_id & ((np.int64(1) << id_bits) - 1))


def share_enough(size: int, common: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return bool[r]: which rows share enough hashes with a sketch.

    Args:
        size: how many hashes the sketch has.
        common: int64[r], how many hashes each row shares with it.
        counts: int64[r], how many hashes each row has.
    """
    are_enough: NDArray[np.bool_] = common >= least_in_common(np.minimum(size, counts))
    return are_enough
