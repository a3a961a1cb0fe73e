"""The compiled kernels that join the rows of a long run by the features that are the rarest in it.

Two similar rows share at least one of these (prefix filter: Bayardo, Ma and Srikant 2007). In a run of rows
that share a phrase, the features of the phrase are in all rows, and those that two similar rows share besides
are in few. Pairs of two short rows are found elsewhere: they may be similar and share no feature.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import place_between
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, full, zeros
from db_dedup.flow.compare.kernels import least_shared
from db_dedup.flow.matching._bitmaps import copied_sets, misses_more
from db_dedup.flow.matching._join_short import compare_two
from db_dedup.flow.matching.groups import by_group, no_joins, noted

_MOST_BUCKETS = 1 << 22
_MOST_COUNT = np.int64(1023)


class SearchedRun(NamedTuple):
    """n rows of a run that are compared by their rarest features.

    Attributes:
        rows: int32[n], row numbers, sorted by their groups.
        ends: int32[n], the end of each row's group among the n.
        sizes: int64[n], how many features each row has.
        rare: int64[n], how many of these are indexed.
        counts: int32[b], for each bucket of features how many the n rows have.
    """

    rows: NDArray[np.int32]
    ends: NDArray[np.int32]
    sizes: NDArray[np.int64]
    rare: NDArray[np.int64]
    counts: NDArray[np.int32]


class RareFeatures(NamedTuple):
    """An index of the rows at some positions of a run by their rarest features.

    Attributes:
        begin: the first position.
        size: how many positions.
        first_of: int64[b + 1], the start of each bucket of features.
        indexed: int32[m], for each bucket the positions of its rows among the n.
        firsts: int64[size + 1], where the bit set of each row begins.
        sets: uint64[w], copies of these sets, one after the other, so that they are in the cache.
    """

    begin: int
    size: int
    first_of: NDArray[np.int64]
    indexed: NDArray[np.int32]
    firsts: NDArray[np.int64]
    sets: NDArray[np.uint64]


@kernel
def sort_run(some, parents, rows, rule):
    """Return the `SearchedRun` of these rows.

    If two rows share at least s of the n features of the smaller row, then any n - s + 1 of these n features
    include a shared one. So it is enough to index the n - s + 1 rarest features of each row, and to look up
    all features of every row.
    """
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    some, bounds = by_group(some, parents)
    ends, sizes = _ends_and_sizes(some, bounds, rows)
    rare = empty(some.size, np.int64)
    for i in range(some.size):
        least = least_shared(rule.measure, rule.threshold, sizes[i], sizes[i])
        rare[i] = min(sizes[i], max(0, sizes[i] - least + 1))
    buckets = 1024
    while buckets < min(_total(sizes), _MOST_BUCKETS):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    counts = zeros(buckets, np.int32)
    for row in some:
        for feature in hashes[starts[places[row]] : starts[places[row] + 1]]:
            counts[feature & mask] += 1
    return SearchedRun(some, ends, sizes, rare, counts)


@kernel
def index_rarest(begin, end, run, bitmaps, rows):
    """Return the `RareFeatures` of the rows at the positions from begin to end."""
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    some, sizes, rare, counts = run.rows, run.sizes, run.rare, run.counts
    mask = np.uint64(counts.size - 1)
    is_rare = zeros(_total(sizes[begin:end]), np.bool_)
    first_of, histogram = zeros(counts.size + 1, np.int64), empty(_MOST_COUNT + 1, np.int64)
    first = 0
    for i in range(begin, end):
        own = starts[places[some[i]]]
        _mark_rarest(hashes, own, sizes[i], counts, rare[i], histogram, is_rare, first)
        for k in range(sizes[i]):
            if is_rare[first + k]:
                first_of[(hashes[own + k] & mask) + np.uint64(1)] += 1
        first += sizes[i]
    for bucket in range(counts.size):
        first_of[bucket + 1] += first_of[bucket]
    indexed = empty(first_of[-1], np.int32)
    used = first_of[:-1].copy()
    first = 0
    for i in range(begin, end):
        for k, feature in enumerate(hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]):
            if is_rare[first + k]:
                indexed[used[feature & mask]] = i
                used[feature & mask] += 1
        first += sizes[i]
    firsts, sets = copied_sets(some[begin:end], bitmaps)
    return RareFeatures(begin, end - begin, first_of, indexed, firsts, sets)


@inner
def _mark_rarest(hashes, own, size, counts, wanted, histogram, is_rare, first):
    """Mark so many of a row's features, those that are in the fewest rows of the run.

    Counts of `_MOST_COUNT` and more are not told apart: any features find all pairs, rare ones find them
    faster.

    Args:
        hashes: uint64[m], features.
        own: where those of the row begin.
        size: how many it has.
        counts: int32[b], for each bucket of features how many rows have one.
        wanted: how many to mark.
        histogram: int64[_MOST_COUNT + 1], overwritten.
        is_rare: bool[f], written from `first` on.
        first: the position of the row's first feature.
    """
    mask = np.uint64(counts.size - 1)
    for count in range(histogram.size):
        histogram[count] = 0
    for k in range(size):
        histogram[min(counts[hashes[own + k] & mask], _MOST_COUNT)] += 1
    limit, spare = np.int64(0), wanted
    while limit < _MOST_COUNT and histogram[limit] <= spare:
        spare -= histogram[limit]
        limit += 1
    for k in range(size):
        count = min(counts[hashes[own + k] & mask], _MOST_COUNT)
        is_last = count == limit and spare > 0
        spare -= np.int64(is_last)
        is_rare[first + k] = count < limit or is_last


@kernel
def count_visits(run, index):
    """Return how many entries of the index `join_indexed` visits."""
    visits = np.int64(0)
    for bucket in range(run.counts.size):
        visits += np.int64(run.counts[bucket]) * (index.first_of[bucket + 1] - index.first_of[bucket])
    return visits


@inner
def _total(numbers):
    """Return what `numbers.sum()` does; for that numba imports scipy."""
    total = np.int64(0)
    for number in numbers:
        total += number
    return total


@allocating
def _ends_and_sizes(some, bounds, rows):
    """Return for each row (the end of its group among the rows, the number of its features)."""
    ends, sizes = empty(some.size, np.int32), empty(some.size, np.int64)
    for g in range(bounds.size - 1):
        for i in range(bounds[g], bounds[g + 1]):
            place = rows.places[some[i]]
            ends[i], sizes[i] = bounds[g + 1], rows.starts[place + 1] - rows.starts[place]
    return ends, sizes


@kernel
def join_indexed(run, index, run_hash, bitmaps, parents, rows, rule):
    """Join the groups of confirmed pairs of rows of a run that share enough hashes.

    One row of each pair is any row of the run. The other row is indexed, and has at most as many features.

    Args:
        run: the result of `sort_run`.
        index: the result of `index_rarest`.
        run_hash: the `RunHash` of the run.
        bitmaps: of all rows, by `make_bitmaps`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.

    Returns:
        (left, right) row numbers of the pairs that joined two groups.
    """
    some = run.rows
    joins = no_joins(parents)
    seen, near = full(index.size, -1, np.int32), empty(index.size, np.int32)
    levels = empty(2 * _most_words(some, bitmaps), np.uint64)
    for i in range(some.size):
        a = some[i]
        _write_levels(a, bitmaps, levels)
        first, end = rows.starts[rows.places[a]], rows.starts[rows.places[a] + 1]
        for k in range(_find_near(i, rows.hashes, first, end, run, index, levels, seen, near, rule)):
            compare_two(a, some[near[k]], run_hash, bitmaps, parents, rows, rule, joins)
    return noted(joins)


@inner
def _find_near(i, hashes, first, end, run, index, levels, seen, near, rule):
    """Write to `near` the indexed rows that may be pairs with row i; return their number.

    Args:
        i: position of the row in the run.
        hashes: uint64[m], features.
        first: where those of the row begin.
        end: where they end.
        run: the result of `sort_run`.
        index: the result of `index_rarest`.
        levels: of the row, by `_write_levels`.
        seen: int32[size], for each indexed row the last row that it was compared with.
        near: int32[size], positions in the run.
        rule: `RuleNumbers`.
    """
    first_of, indexed, begin = index.first_of, index.indexed, index.begin
    ends, sizes = run.ends, run.sizes
    mask = np.uint64(first_of.size - 2)
    count, own = 0, sizes[i]
    for k in range(first, end):
        bucket = np.int64(hashes[k] & mask)
        place, last = first_of[bucket], first_of[bucket + 1]
        while place < last:
            j = indexed[place]
            place += 1
            if seen[j - begin] == i:
                continue
            seen[j - begin] = i
            if ends[j] == ends[i]:
                # The rows were in one group when they were sorted: skip all rows of the group.
                place = place_between(indexed, place, last, ends[i])
            elif (sizes[j] < own or (sizes[j] == own and j < i)) and not _is_unlike(
                j - begin, own, sizes[j], levels, index, rule
            ):
                near[count] = j
                count += 1
    return count


@inner
def _most_words(some, bitmaps):
    """Return how many words the largest bit set of some rows has."""
    most = np.int64(1)
    for row in some:
        most = max(most, bitmaps.firsts[row + 1] - bitmaps.firsts[row])
    return most


@inner
def _write_levels(row, bitmaps, levels):
    """Write the bit set of a row to `levels`, also joined to fewer words: the one of w words begins at w."""
    first, words = bitmaps.firsts[row], bitmaps.firsts[row + 1] - bitmaps.firsts[row]
    for k in range(words):
        levels[words + k] = bitmaps.sets[first + k]
    while words > 1:
        words >>= 1
        for k in range(words):
            levels[words + k] = levels[2 * words + k] | levels[3 * words + k]


@inner
def _is_unlike(b, size, other_size, levels, index, rule):
    """Return whether an indexed row is certainly no pair with a row that has at least as many features.

    Args:
        b: the place of the row with fewer features in the index.
        size: how many features the other row has.
        other_size: how many features b has.
        levels: of the other row, by `_write_levels`.
        index: of the rows.
        rule: `RuleNumbers`.
    """
    first, words = index.firsts[b], index.firsts[b + 1] - index.firsts[b]
    least = least_shared(rule.measure, rule.threshold, size, other_size)
    if misses_more(index.sets, first, levels, words, words, other_size - least):
        return True
    return misses_more(levels, words, index.sets, first, words, size - least)
