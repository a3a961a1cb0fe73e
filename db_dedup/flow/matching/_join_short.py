"""The compiled kernel that joins short rows which share a hash.

The hashes of short rows are single grams, so a run of rows with the same hash may be long, and most of its
rows are not alike. `_join_features` cannot find these pairs, since two similar short rows may share no
feature. So every two short rows of a run are compared, most of them by a few operations on the sets of their
symbols. Only rows with other numbers are skipped: they are no duplicates.
"""

import numpy as np

from db_dedup.flow._arrays import stable_order
from db_dedup.flow._compiled import allocating, inner
from db_dedup.flow._new_arrays import empty, full
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.compare.kernels import confirmed, least_shared, share_enough_hashes
from db_dedup.flow.features.characters import MOST_EDITS, SHORT
from db_dedup.flow.matching._bitmaps import lack_long_grams
from db_dedup.flow.matching._shared_hashes import is_compared_elsewhere
from db_dedup.flow.matching.groups import find_root, join

_BOUNDS = SHORT + 1
_NO_BOUND = -64
"""No bound: so low that no two 64-bit sets are ruled out."""


@allocating
def bounds_of_short(rule):
    """Return (int64[31, 31], int64[31, 31]), two tables for two short rows.

    The first has how many features two rows with so many must share for the measure; `_NO_BOUND` if the
    measure has no bound. The second has how many edits may be in two rows of so many symbols; -1 for none.
    """
    shared = full((_BOUNDS, _BOUNDS), _NO_BOUND, np.int64)
    edits = full((_BOUNDS, _BOUNDS), -1, np.int64)
    for a in range(1, _BOUNDS):
        for b in range(1, _BOUNDS):
            least = least_shared(rule.measure, rule.threshold, a, b)
            if least > 0:
                shared[a, b] = least
            # The same arithmetic as that of `edit_similarity`, so that both round alike.
            for k in range(MOST_EDITS + 1):
                if 1.0 - k / max(a, b) >= rule.short_threshold:
                    edits[a, b] = k
    return shared, edits


@allocating
def compare_short(some, run_hash, bounds, bitmaps, parents, rows, rule, joins):
    """Compare every two short rows of a run, but for those with other numbers.

    Args:
        some: the row numbers of the run.
        run_hash: the `RunHash` of the run.
        bounds: the result of `bounds_of_short`.
        bitmaps: of all rows, by `make_bitmaps`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.
        joins: gets the pairs that join two groups.

    Returns:
        how many rows of the run are not short.
    """
    short = _by_numbers(_short_of(some, bitmaps), bitmaps)
    copied = _copied(short, bitmaps)
    others, near = _other_numbers(short, bitmaps), empty(short.size, np.int32)
    for i in range(short.size - 1):
        for k in range(_find_near(i, others, copied, bounds, near)):
            compare_two(short[i], short[near[k]], run_hash, bitmaps, parents, rows, rule, joins)
    return some.size - short.size


@inner
def compare_each(some, run_hash, bitmaps, parents, rows, rule, joins):
    """Compare every two rows by their features."""
    for i in range(some.size):
        for j in range(i + 1, some.size):
            compare_two(some[i], some[j], run_hash, bitmaps, parents, rows, rule, joins)


@inner
def compare_two(a, b, run_hash, bitmaps, parents, rows, rule, joins):
    """Join the groups of two rows of a run if they are a pair that is not compared in another run."""
    if find_root(parents, a) != find_root(parents, b) and not is_compared_elsewhere(a, b, run_hash, rows):
        join_if_pair(a, b, bitmaps, parents, rows, rule, joins)


@inner
def join_if_pair(a, b, bitmaps, parents, rows, rule, joins):
    """Join the groups of two rows if they are a pair.

    Two long texts in letters share most features and many hashes whatever they are about, but few long grams:
    the bit sets of these rule out nearly all of them. To read the features would take fifty times as long.
    """
    if not lack_long_grams(a, b, bitmaps, rows, rule) and are_pair(a, b, rows, rule):
        join(a, b, parents, joins)


@inner
def are_pair(a, b, rows, rule):
    """Return whether two rows are a pair that shares enough hashes."""
    return share_enough_hashes(a, b, rows) and confirmed(a, b, rows, rule)[0]


@inner
def _find_near(i, others, copied, bounds, near):
    """Write to `near` the positions after i of the rows that may be pairs with row i; return their number.

    The rows from others[0][i] to others[1][i] have other numbers.

    Two rows may be a pair if few of their symbols differ, or if few of their features do. The features that
    two rows share begin at as many different symbols, which both rows have. The loop has no branch, since
    the processor would often predict it wrongly.
    """
    lengths, sizes, symbols, small_sets = copied
    length, size, own, own_features = lengths[i], sizes[i], symbols[i], small_sets[i]
    least_of, edits_of = bounds[0][size], bounds[1][length]
    count = np.uint64(0)
    for first, end in ((np.int64(i + 1), others[0][i]), (others[1][i], lengths.size)):
        for j in range(np.uint64(first), np.uint64(end)):
            only_one = np.int64(popcount(own & ~symbols[j]))
            only_other = np.int64(popcount(symbols[j] & ~own))
            other_length, other_size = lengths[j], sizes[j]
            edits = max(only_one, only_other, np.int64(abs(length - other_length)))
            least = least_of[np.uint64(other_size)]
            features_of_one = np.int64(popcount(own_features & ~small_sets[j]))
            features_of_other = np.int64(popcount(small_sets[j] & ~own_features))
            by_edits = edits <= edits_of[np.uint64(other_length)]
            by_symbols = (only_one <= length - least) & (only_other <= other_length - least)
            by_features = (features_of_one <= size - least) & (features_of_other <= other_size - least)
            near[count] = j
            count += np.uint64(by_edits | (by_symbols & by_features))
    return np.int64(count)


@allocating
def _short_of(some, bitmaps):
    """Return the short rows."""
    short = empty(some.size, some.dtype)
    count = 0
    for row in some:
        short[count] = row
        count += bitmaps.lengths[row] > 0
    return short[:count]


@allocating
def _by_numbers(short, bitmaps):
    """Sort short rows by the places of their numbers, and those with the same places by the values."""
    for of_rows in (bitmaps.number_values, bitmaps.number_places):
        keys = empty(short.size, np.int64)  # the order does not matter, and `by_group` sorts such keys, too
        for i in range(short.size):
            keys[i] = np.int64(of_rows[short[i]])
        order, ordered = stable_order(keys), empty(short.size, short.dtype)
        for i in range(short.size):
            ordered[i] = short[order[i]]
        short = ordered
    return short


@allocating
def _other_numbers(short, bitmaps):
    """Return (int64[n], int64[n]), for each of n sorted rows from where to where the rows have other numbers.

    These are the rows after it with numbers at the same places, but not with the same values.
    """
    firsts, ends = empty(short.size, np.int64), empty(short.size, np.int64)
    first, end = short.size, short.size
    for i in range(short.size - 1, -1, -1):
        if i + 1 < short.size:
            is_of_form = bitmaps.number_places[short[i]] == bitmaps.number_places[short[i + 1]]
            has_values = bitmaps.number_values[short[i]] == bitmaps.number_values[short[i + 1]]
            if not is_of_form:
                end = np.int64(i + 1)
            if not (is_of_form and has_values):
                first = np.int64(i + 1)
        firsts[i], ends[i] = first, end
    return firsts, ends


@allocating
def _copied(short, bitmaps):
    """Return the lengths, sizes and sets of short rows, so that they are one after the other in the cache.

    A number of features that `bounds_of_short` does not know is 0, which has no bound.
    """
    lengths, sizes = empty(short.size, np.int64), empty(short.size, np.int64)
    symbols, small_sets = empty(short.size, np.uint64), empty(short.size, np.uint64)
    for i in range(short.size):
        row = short[i]
        lengths[i], symbols[i], small_sets[i] = (
            bitmaps.lengths[row],
            bitmaps.symbols[row],
            bitmaps.small_sets[row],
        )
        size = bitmaps.sizes[row]
        sizes[i] = size if size < _BOUNDS else 0
    return lengths, sizes, symbols, small_sets
