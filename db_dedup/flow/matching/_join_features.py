"""The compiled kernels that join rows by their rarest features: two similar rows share at least one of these.

They are used for rows that share hashes with very many rows that are not similar to them. Pairs of two short
rows are found elsewhere: they may be similar and share no feature.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import stable_order
from db_dedup.flow._compiled import inner, kernel, scalar
from db_dedup.flow.compare.kernels import confirmed, least_shared, share_enough_hashes
from db_dedup.flow.matching._join_runs import by_group
from db_dedup.flow.matching._outlines import misses_more
from db_dedup.flow.matching.groups import find_root, joined

_MOST_BUCKETS = 1 << 22


class LeftOver(NamedTuple):
    """n rows that are compared by their rarest features.

    Attributes:
        rows: int32[n], row numbers, sorted by their groups.
        ends: int32[n], the end of each row's group among the n.
        sizes: int64[n], how many features each row has.
        rare: int64[n], how many of these are indexed.
        counts: int64[b], for each bucket of features how many the n rows have.
    """

    rows: NDArray[np.int32]
    ends: NDArray[np.int32]
    sizes: NDArray[np.int64]
    rare: NDArray[np.int64]
    counts: NDArray[np.int64]


class RareFeatures(NamedTuple):
    """An index of the rows at some positions by their rarest features.

    Attributes:
        begin: the first position.
        size: how many positions.
        first_of: int64[b + 1], the start of each bucket of features.
        indexed: int32[m], for each bucket the positions of its rows among the n.
    """

    begin: int
    size: int
    first_of: NDArray[np.int64]
    indexed: NDArray[np.int32]


@kernel
def sort_left_over(some, parents, rows, rule):
    """Return the `LeftOver` of these rows.

    If two rows share at least s of the n features of the smaller row, then any n - s + 1 of these n features
    include a shared one. So it is enough to index the n - s + 1 rarest features of each row, and to look up
    all features of every row.
    """
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    some, bounds = by_group(some, parents)
    ends, sizes = _ends_and_sizes(some, bounds, rows)
    rare = np.empty(some.size, np.int64)
    for i in range(some.size):
        least = least_shared(rule.measure, rule.threshold, sizes[i], sizes[i])
        rare[i] = min(sizes[i], max(0, sizes[i] - least + 1))
    buckets = 1024
    while buckets < min(2 * sizes.sum(), _MOST_BUCKETS):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    counts = np.zeros(buckets, np.int64)
    for row in some:
        for feature in hashes[starts[places[row]] : starts[places[row] + 1]]:
            counts[feature & mask] += 1
    return LeftOver(some, ends, sizes, rare, counts)


@kernel
def index_rarest(begin, end, left_over, rows):
    """Return the `RareFeatures` of the rows at the positions from begin to end."""
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    some, sizes, rare, counts = left_over.rows, left_over.sizes, left_over.rare, left_over.counts
    mask = np.uint64(counts.size - 1)
    is_rare = np.zeros(sizes[begin:end].sum(), np.bool_)
    first_of = np.zeros(counts.size + 1, np.int64)
    first = 0
    for i in range(begin, end):
        own = hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]
        for k in stable_order(counts[own & mask])[: rare[i]]:
            is_rare[first + k] = True
            first_of[(own[k] & mask) + np.uint64(1)] += 1
        first += sizes[i]
    for bucket in range(counts.size):
        first_of[bucket + 1] += first_of[bucket]
    indexed = np.empty(first_of[-1], np.int32)
    used = first_of[:-1].copy()
    first = 0
    for i in range(begin, end):
        for k, feature in enumerate(hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]):
            if is_rare[first + k]:
                indexed[used[feature & mask]] = i
                used[feature & mask] += 1
        first += sizes[i]
    return RareFeatures(begin, end - begin, first_of, indexed)


@inner
def _ends_and_sizes(some, bounds, rows):
    """Return for each row (the end of its group among the rows, the number of its features)."""
    ends, sizes = np.empty(some.size, np.int32), np.empty(some.size, np.int64)
    for g in range(bounds.size - 1):
        for i in range(bounds[g], bounds[g + 1]):
            place = rows.places[some[i]]
            ends[i], sizes[i] = bounds[g + 1], rows.starts[place + 1] - rows.starts[place]
    return ends, sizes


@kernel
def join_indexed(first, last, left_over, index, outlines, parents, rows, rule):
    """Join the groups of confirmed pairs of rows that share enough hashes.

    One row of each pair is at a position from first to last. The other row is indexed, and has at most as
    many features.

    Args:
        first: position among the rows that are left over.
        last: position after the last one.
        left_over: the result of `sort_left_over`.
        index: the result of `index_rarest`.
        outlines: of all rows, by `outline_rows`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.

    Returns:
        (left, right) row numbers of the pairs that joined two groups.
    """
    some, ends, sizes = left_over.rows, left_over.ends, left_over.sizes
    first_of, indexed, begin = index.first_of, index.indexed, index.begin
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    mask = np.uint64(first_of.size - 2)
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), np.int64(0)
    compared_with = np.full(index.size, -1, np.int32)
    levels = np.empty(2 * _most_words(some[first:last], outlines), np.uint64)
    for i in range(first, last):
        a = some[i]
        _write_levels(a, outlines, levels)
        for feature in hashes[starts[places[a]] : starts[places[a] + 1]]:
            bucket = feature & mask
            place, end = first_of[bucket], first_of[bucket + np.uint64(1)]
            while place < end:
                j = indexed[place]
                place += 1
                if ends[j] == ends[i]:
                    # The rows were in one group when they were sorted: skip all rows of the group.
                    place += np.searchsorted(indexed[place:end], ends[i])
                    continue
                if compared_with[j - begin] == i or sizes[j] > sizes[i] or (sizes[j] == sizes[i] and j > i):
                    continue
                compared_with[j - begin] = i
                b = some[j]
                if _is_unlike(b, sizes[i], sizes[j], levels, outlines, rule):
                    continue
                if find_root(parents, a) == find_root(parents, b):
                    continue
                if confirmed(a, b, rows, rule)[0] and share_enough_hashes(a, b, rows):
                    pairs, found = joined(a, b, parents, pairs, found)
    left, right = pairs
    return left[:found].copy(), right[:found].copy()


@inner
def _most_words(some, outlines):
    """Return how many words the largest bit set of some rows has."""
    most = np.int64(1)
    for row in some:
        most = max(most, outlines.firsts[row + 1] - outlines.firsts[row])
    return most


@scalar
def _write_levels(row, outlines, levels):
    """Write the bit set of a row to `levels`, also joined to fewer words: the one of w words begins at w."""
    first, words = outlines.firsts[row], outlines.firsts[row + 1] - outlines.firsts[row]
    for k in range(words):
        levels[words + k] = outlines.sets[first + k]
    while words > 1:
        words >>= 1
        for k in range(words):
            levels[words + k] = levels[2 * words + k] | levels[3 * words + k]


@scalar
def _is_unlike(b, size, other_size, levels, outlines, rule):
    """Return whether a row b is certainly no pair with a row that has at least as many features.

    Args:
        b: the row with fewer features.
        size: how many features the other row has.
        other_size: how many features b has.
        levels: of the other row, by `_write_levels`.
        outlines: of all rows.
        rule: `RuleNumbers`.
    """
    first, words = outlines.firsts[b], outlines.firsts[b + 1] - outlines.firsts[b]
    least = least_shared(rule.measure, rule.threshold, size, other_size)
    if misses_more(outlines.sets, first, levels, words, words, other_size - least):
        return True
    return misses_more(levels, words, outlines.sets, first, words, size - least)
