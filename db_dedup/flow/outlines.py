"""Outlines of sets: what shows, without a look at the sets, that two rows share too little.

Every feature of a row sets one bit in as many words as the row needs to be a quarter full at most. Features
that two rows share set bits that both have, so they share no more features than bits, and what the row whose
bits are counted has lost, since some of its features set the same bit. That is certain. Most rows that merely
have a set phrase in common fail it, at a hundredth of the cost of comparing them.
"""

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._bucket_join import popcount

_FEATURES_A_WORD: Final = 16

Outlines = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]
"""(int64[n + 1] the rows' slices, uint64[m] their words, a power of two for each row, int32[n] how many
features more than bits each row has)."""

NO_OUTLINES: Final[Outlines] = (np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int32))
"""They rule nothing out."""


def outlines_of(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> Outlines:
    """The outline of each row.

    Args:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], distinct within a row, evenly spread.
    """
    firsts, words, surplus = _outlines(starts, hashes)
    return firsts, words, surplus


@nb.njit(cache=True, nogil=True)
def may_share(outlines, a, b, least):  # type: ignore[no-untyped-def]
    """Whether rows a and b may have so many features in common; for use inside other kernels."""
    firsts, words, surplus = outlines
    if firsts.size == 0:
        return True
    if firsts[a + 1] - firsts[a] < firsts[b + 1] - firsts[b]:
        a, b = b, a
    size, size_b = firsts[a + 1] - firsts[a], firsts[b + 1] - firsts[b]
    lost = surplus[a] if size > size_b else min(surplus[a], surplus[b])
    missing = least - lost
    for k in range(size):
        # A feature in word k of the longer outline is in this word of the shorter one.
        both = words[firsts[a] + k] & words[firsts[b] + (k & (size_b - 1))]
        missing -= np.int64(popcount(both))
    return missing <= 0


@nb.njit(cache=True, nogil=True)
def _outlines(starts, hashes):  # type: ignore[no-untyped-def]
    count = starts.size - 1
    firsts = np.zeros(count + 1, np.int64)
    for row in range(count):
        size = 1
        while size * _FEATURES_A_WORD < starts[row + 1] - starts[row]:
            size *= 2
        firsts[row + 1] = firsts[row] + size
    words = np.zeros(firsts[count], np.uint64)
    surplus = np.zeros(count, np.int32)
    for row in range(count):
        last = np.uint64(firsts[row + 1] - firsts[row] - 1)
        for feature in hashes[starts[row] : starts[row + 1]]:
            place = firsts[row] + np.int64((feature >> np.uint64(6)) & last)
            bit = np.uint64(1) << (feature & np.uint64(63))
            surplus[row] += (words[place] & bit) != 0
            words[place] |= bit
    return firsts, words, surplus
