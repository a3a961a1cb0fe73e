"""Bitmaps of what rows have. They reject most pairs of rows without reading the features (bitmap filter)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import zeros
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.edit_distance import is_short
from db_dedup.flow.features.details import CHARACTERS, SECTIONS

_WORDS_A_STEP = 8


class Bitmaps(NamedTuple):
    """The bitmaps of n rows.

    A set has a bit for each feature of the row, and 8 to 16 times as many bits. The number of its words is a
    power of two. A larger set becomes one of fewer words if its two halves are joined by "or".

    Attributes:
        sizes: int32[n], how many features each row has.
        firsts: int64[n + 1], row i owns the slice firsts[i]:firsts[i + 1] of `sets`.
        sets: uint64[w].
        lengths: int32[n], how many symbols a short row has; 0 for other rows.
        symbols: uint64[n], the set of the symbols of a short row.
        small_sets: uint64[n], the set of the features of a short row in one word.
    """

    sizes: NDArray[np.int32]
    firsts: NDArray[np.int64]
    sets: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    symbols: NDArray[np.uint64]
    small_sets: NDArray[np.uint64]


@kernel
def count_bitmaps(rows, rule):
    """Return (sizes, firsts) of the `Bitmaps` of all rows; of no rows if no measure compares them."""
    count = rows.fingerprints.size if rule.measure >= 0 else 0
    sizes, firsts = zeros(count, np.int32), zeros(count + 1, np.int64)
    for row in range(count):
        place = rows.places[row]
        words = 1
        if place >= 0:
            sizes[row] = rows.starts[place + 1] - rows.starts[place]
            while words * 8 < sizes[row]:
                words *= 2
        firsts[row + 1] = firsts[row] + words
    return sizes, firsts


@kernel
def make_bitmaps(sizes, firsts, sets, rows, rule):
    """Return the `Bitmaps` of all rows that `count_bitmaps` has counted.

    A row without a place among the features has an empty set.

    Args:
        sizes: by `count_bitmaps`.
        firsts: by `count_bitmaps`.
        sets: uint64[w], zeros that become the sets; they may be in a file.
        rows: `RowArrays`.
        rule: `RuleNumbers`.
    """
    count = sizes.size
    lengths = zeros(count, np.int32)
    symbols, small_sets = zeros(count, np.uint64), zeros(count, np.uint64)
    for row in range(count):
        place = rows.places[row]
        if place < 0:
            continue
        own = sets[firsts[row] : firsts[row + 1]]
        _set_bits(own, rows.hashes[rows.starts[place] : rows.starts[place + 1]])
        if rule.short_threshold > 0 and is_short(rows.detail_starts, place):
            first = rows.detail_starts[place * SECTIONS + CHARACTERS]
            # The set of the symbols comes before the symbols.
            lengths[row] = rows.detail_starts[place * SECTIONS + CHARACTERS + 1] - first - 1
            symbols[row] = rows.details[first]
            for word in own:
                small_sets[row] |= word
    return Bitmaps(sizes, firsts, sets, lengths, symbols, small_sets)


@inner
def _set_bits(words, features):
    """Set a bit for each feature."""
    last = np.uint64(words.size - 1)
    for feature in features:
        words[(feature >> np.uint64(6)) & last] |= np.uint64(1) << (feature & np.uint64(63))


@inner
def misses_more(sets, first, others, other_first, words, most):
    """Return whether more than `most` bits of one set are not in the other, of as many words.

    If so, more than `most` features of the one row are certainly not in the other.
    """
    # Unsigned, so that numba does not check for negative positions.
    place, other = np.uint64(first), np.uint64(other_first)
    end = place + np.uint64(words)
    missed = np.int64(0)
    # So many words without a branch: several are counted at a time.
    while place + np.uint64(_WORDS_A_STEP) <= end:
        bits = np.uint64(0)
        for k in range(np.uint64(_WORDS_A_STEP)):
            bits += popcount(sets[place + k] & ~others[other + k])
        missed += np.int64(bits)
        if missed > most:
            return True
        place += np.uint64(_WORDS_A_STEP)
        other += np.uint64(_WORDS_A_STEP)
    while place < end:
        missed += np.int64(popcount(sets[place] & ~others[other]))
        place += np.uint64(1)
        other += np.uint64(1)
    return missed > most
