"""Bitmaps of what rows have. They reject most pairs of rows without reading the features (bitmap filter)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._by_pointer import Arrays
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.edit_distance import is_short
from db_dedup.flow.compare.kernels import RowArrays, RuleNumbers, long_grams_of
from db_dedup.flow.compare.long_grams import least_shared_long
from db_dedup.flow.compare.numbers import hash_numbers
from db_dedup.flow.features.details import CHARACTERS, SECTIONS
from db_dedup.flow.matching import spool
from db_dedup.flow.matching.paging import expect_reads

_WORDS_A_STEP = 8


@dataclass(frozen=True)
class Bitmaps(Arrays):
    """The bitmaps of n rows.

    A set has a bit for each feature of the row, and 8 to 16 times as many bits. The number of its words is a
    power of two. A larger set becomes one of fewer words if its two halves are joined by "or".

    Attributes:
        sizes: int32[n], how many features each row has.
        firsts: int64[n + 1], row i owns the slice firsts[i]:firsts[i + 1] of `sets`.
        long_firsts: int64[n + 1], where the set of each row's long grams begins in `sets`, and the end of the
            last one; int64[0] if long grams are not compared, or no row has any.
        sets: uint64[w].
        lengths: int32[n], how many symbols a short row has; 0 for other rows.
        symbols: uint64[n], the set of the symbols of a short row.
        small_sets: uint64[n], the set of the features of a short row in one word.
        number_places: uint64[n], the first result of `hash_numbers` for a short row.
        number_values: uint64[n], the second one.
    """

    sizes: NDArray[np.int32]
    firsts: NDArray[np.int64]
    long_firsts: NDArray[np.int64]
    sets: NDArray[np.uint64]
    lengths: NDArray[np.int32]
    symbols: NDArray[np.uint64]
    small_sets: NDArray[np.uint64]
    number_places: NDArray[np.uint64]
    number_values: NDArray[np.uint64]


def make_bitmaps(rows: RowArrays, rule: RuleNumbers, held_bytes: int) -> Bitmaps:
    """Return the `Bitmaps` of all rows; of none if no measure compares them.

    Args:
        rows: of the table; one without a place among the features has an empty set.
        rule: the rule that decides.
        held_bytes: if the sets take more, they are in a temporary file.
    """
    sizes, firsts, long_firsts = _count(rows, rule)
    words = firsts[-1]
    if long_firsts.size:
        words = long_firsts[-1]
        if words == firsts[-1]:  # no row has long grams
            long_firsts = long_firsts[:0]
    sets = spool.zeros(int(words), np.uint64, held_bytes)
    expect_reads(rows.hashes, in_order=True)
    others = _fill(sizes, firsts, long_firsts, sets, rows, rule)
    for values in (rows.hashes, sets):
        expect_reads(values, in_order=False)
    return Bitmaps(sizes, firsts, long_firsts, sets, *others)


@kernel
def _count(rows, rule):
    """Return the sizes, firsts and long_firsts of the `Bitmaps`; the sets of long grams come last."""
    count = rows.fingerprints.size if rule.measure >= 0 else 0
    sizes, firsts = zeros(count, np.int32), zeros(count + 1, np.int64)
    for row in range(count):
        place = rows.places[row]
        if place >= 0:
            sizes[row] = rows.starts[place + 1] - rows.starts[place]
        firsts[row + 1] = firsts[row] + _words_for(sizes[row])
    long_firsts = zeros(count + 1 if rule.long_grams else 0, np.int64)
    if long_firsts.size:
        long_firsts[0] = firsts[count]
        for row in range(count):
            size = _count_long_grams(row, rows)
            long_firsts[row + 1] = long_firsts[row] + (_words_for(size) if size else 0)
    return sizes, firsts, long_firsts


@inner
def _words_for(size):
    """Return how many words the set of so many features has."""
    words = 1
    while words * 8 < size:
        words *= 2
    return words


@inner
def _count_long_grams(row, rows):
    """Return how many long grams a row has."""
    if rows.places[row] < 0:
        return np.int64(0)
    first, end = long_grams_of(rows.detail_starts, rows.places[row])
    return end - first


@kernel
def _fill(sizes, firsts, long_firsts, sets, rows, rule):
    """Write the sets of the `Bitmaps`; return its other arrays.

    Args:
        sizes: by `_count`.
        firsts: by `_count`.
        long_firsts: by `_count`; empty if no row has long grams.
        sets: uint64[w], zeros.
        rows: `RowArrays`.
        rule: `RuleNumbers`.
    """
    count = sizes.size
    lengths = zeros(count, np.int32)
    symbols, small_sets = zeros(count, np.uint64), zeros(count, np.uint64)
    number_places, number_values = zeros(count, np.uint64), zeros(count, np.uint64)
    for row in range(count):
        place = rows.places[row]
        if place < 0:
            continue
        own = sets[firsts[row] : firsts[row + 1]]
        _set_bits(own, rows.hashes[rows.starts[place] : rows.starts[place + 1]])
        if long_firsts.size:
            first, end = long_grams_of(rows.detail_starts, place)
            _set_bits(sets[long_firsts[row] : long_firsts[row + 1]], rows.details[first:end])
        if rule.short_threshold > 0 and is_short(rows.detail_starts, place):
            first = rows.detail_starts[place * SECTIONS + CHARACTERS]
            end = rows.detail_starts[place * SECTIONS + CHARACTERS + 1]
            # The set of the symbols comes before the symbols.
            lengths[row] = end - first - 1
            symbols[row] = rows.details[first]
            for word in own:
                small_sets[row] |= word
            number_places[row], number_values[row] = hash_numbers(rows.details[first + 1 : end])
    return lengths, symbols, small_sets, number_places, number_values


@inner
def _set_bits(words, features):
    """Set a bit for each feature."""
    last = np.uint64(words.size - 1)
    for feature in features:
        words[(feature >> np.uint64(6)) & last] |= np.uint64(1) << (feature & np.uint64(63))


@allocating
def copied_sets(some, bitmaps):
    """Return (int64[n + 1] slices, uint64[w]): the bit sets of some rows."""
    firsts = zeros(some.size + 1, np.int64)
    for i in range(some.size):
        firsts[i + 1] = firsts[i] + bitmaps.firsts[some[i] + 1] - bitmaps.firsts[some[i]]
    sets = empty(firsts[-1], np.uint64)
    for i in range(some.size):
        first = np.uint64(bitmaps.firsts[some[i]] - firsts[i])
        for k in range(np.uint64(firsts[i]), np.uint64(firsts[i + 1])):
            sets[k] = bitmaps.sets[first + k]
    return firsts, sets


@inner
def lack_long_grams(a, b, bitmaps, rows, rule):
    """Return whether two rows certainly share fewer long grams than a pair does."""
    firsts, sets = bitmaps.long_firsts, bitmaps.sets
    if firsts.size == 0:
        return False
    size_a, size_b = _count_long_grams(a, rows), _count_long_grams(b, rows)
    if size_a > size_b:
        a, b = b, a
    least = least_shared_long(rule.threshold, size_a, size_b)
    if least == 0:
        return False
    words, others = firsts[a + 1] - firsts[a], firsts[b + 1] - firsts[b]
    most = min(size_a, size_b) - least
    if words == others:
        return misses_more(sets, firsts[a], sets, firsts[b], words, most)
    missed = np.int64(0)
    for k in range(np.uint64(words)):
        other = np.uint64(0)
        for place in range(k, np.uint64(others), np.uint64(words)):
            other |= sets[np.uint64(firsts[b]) + place]
        missed += np.int64(popcount(sets[np.uint64(firsts[a]) + k] & ~other))
        if missed > most:
            return True
    return False


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
