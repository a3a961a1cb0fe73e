"""The compiled kernels that join rows which share a value of their sketches, run by run.

A run is all the rows with the same value. Most runs are short, and comparing all pairs of a run is cheapest.
A long run of near-equal rows is joined by a few comparisons, since rows of one group need no comparison. A
long run of rows that are not alike, such as letters with the same set phrase, is left to `_join_features`; of
the short rows in it every two are compared.
"""

import numpy as np

from db_dedup.flow._arrays import stable_order
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow.compare.kernels import are_short, confirmed, least_shared, share_enough_hashes
from db_dedup.flow.matching._join_short import compare_short, least_shared_of_short
from db_dedup.flow.matching.groups import find_root, joined


@kernel
def join_runs(run_rows, starts, longest, parents, rows, rule):
    """Join the groups of confirmed pairs within each run of rows that is not long.

    Args:
        run_rows: row numbers, run by run.
        starts: the position where each run starts, and the end of the last run.
        longest: the most rows of a run in which every two rows are compared.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`; two rows of a run share a hash, but perhaps not enough hashes.
        rule: `RuleNumbers`.

    Returns:
        (left, right) row numbers of the pairs that joined two groups, and bool[r]: the runs that are left to
        `join_long_runs`.
    """
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), np.int64(0)
    is_long = np.zeros(starts.size - 1, np.bool_)
    bounds_of_short = least_shared_of_short(rule)
    can_search = least_shared(rule.measure, rule.threshold, np.int64(1), np.int64(1)) > 0
    for run in range(starts.size - 1):
        some, bounds = by_group(run_rows[starts[run] : starts[run + 1]], parents)
        if bounds.size == 2:
            continue
        if rule.short_threshold > 0:
            pairs, found, others = compare_short(some, bounds_of_short, parents, rows, rule, pairs, found)
            if others == 0:
                continue
        if can_search and some.size <= longest:
            pairs, found = _compare_all(some, parents, rows, rule, pairs, found)
        else:
            is_long[run] = True
    left, right = pairs
    return left[:found].copy(), right[:found].copy(), is_long


@kernel
def join_long_runs(run_rows, starts, is_long, comparisons_a_row, unlike, parents, rows, rule):
    """Join the groups of confirmed pairs within each long run of rows, within a budget of comparisons.

    Args:
        run_rows: row numbers, run by run.
        starts: the position where each run starts, and the end of the last run.
        is_long: the runs to compare, by `join_runs`.
        comparisons_a_row: the most comparisons for each row of a run.
        unlike: bool[n], set to True for the rows that were not compared with all others of a run: two of
            these may be a pair that is not joined yet.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.

    Returns:
        (left, right) row numbers of the pairs that joined two groups.
    """
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), np.int64(0)
    can_search = least_shared(rule.measure, rule.threshold, np.int64(1), np.int64(1)) > 0
    for run in range(starts.size - 1):
        if not is_long[run]:
            continue
        some, bounds = by_group(run_rows[starts[run] : starts[run + 1]], parents)
        if bounds.size == 2:
            continue
        budget = comparisons_a_row * some.size if can_search else np.iinfo(np.int64).max
        some, pairs, found = _compare_groups(some, bounds, budget, parents, rows, rule, pairs, found)
        for row in some:
            unlike[row] = True
    left, right = pairs
    return left[:found].copy(), right[:found].copy()


@inner
def by_group(some, parents):
    """Sort rows by their groups.

    Returns:
        (the sorted rows, the g + 1 bounds of the g groups).
    """
    roots = np.empty(some.size, np.int64)
    for i in range(some.size):
        roots[i] = find_root(parents, some[i])
    order = stable_order(roots)
    by_root = np.empty(some.size, np.int32)
    bounds = np.empty(some.size + 1, np.int64)
    groups = 0
    for i in range(some.size):
        by_root[i] = some[order[i]]
        if i == 0 or roots[order[i]] != roots[order[i - 1]]:
            bounds[groups] = i
            groups += 1
    bounds[groups] = some.size
    return by_root, bounds[: groups + 1].copy()


@inner
def _compare_all(some, parents, rows, rule, pairs, found):
    """Compare every two rows of different groups; return (the pairs, their number)."""
    places, starts, hashes = rows.places, rows.starts, rows.hashes
    keys = np.empty(some.size, np.int64)
    for i in range(some.size):
        keys[i] = starts[places[some[i]]] - starts[places[some[i]] + 1]
    # The larger row first: after a few features it is clear that it has too few of the smaller row's.
    order = stable_order(keys)
    some_of, some, sizes = some, np.empty(some.size, np.int32), np.empty(some.size, np.int64)
    roots = np.empty(some.size, np.int32)
    for i in range(some.size):
        some[i], sizes[i] = some_of[order[i]], -keys[order[i]]
        roots[i] = find_root(parents, some[i])
    bits = np.zeros(_words(sizes[0]), np.uint64)
    before = found
    for i in range(some.size - 1):
        own = bits[: _words(sizes[i])]
        own[:] = 0
        _set_bits(own, hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]])
        for j in range(i + 1, some.size):
            if roots[i] == roots[j]:
                continue
            if found > before and find_root(parents, some[i]) == find_root(parents, some[j]):
                continue
            if are_short(some[i], some[j], rows, rule):
                continue  # `compare_short` has compared them
            least = least_shared(rule.measure, rule.threshold, sizes[i], sizes[j])
            features = hashes[starts[places[some[j]]] : starts[places[some[j]] + 1]]
            if _misses_more(own, features, sizes[j] - least):
                continue
            if confirmed(some[i], some[j], rows, rule)[0] and share_enough_hashes(some[i], some[j], rows):
                pairs, found = joined(some[i], some[j], parents, pairs, found)
    return pairs, found


@inner
def _words(size):
    """Return the number of 64-bit words of a bit set that `size` features fill to an eighth at most.

    The number is a power of two.
    """
    words = 1
    while words * 8 < size:
        words *= 2
    return words


@inner
def _set_bits(words, features):
    """Set a bit for each feature."""
    last = np.uint64(words.size - 1)
    for feature in features:
        words[(feature >> np.uint64(6)) & last] |= np.uint64(1) << (feature & np.uint64(63))


@inner
def _misses_more(words, features, most):
    """Return whether more than `most` of the features are certainly not in the bit set."""
    last = np.uint64(words.size - 1)
    for feature in features:
        word = words[(feature >> np.uint64(6)) & last]
        most -= np.int64(((word >> (feature & np.uint64(63))) & np.uint64(1)) == np.uint64(0))
        if most < 0:
            return True
    return False


@inner
def _compare_groups(some, bounds, budget, parents, rows, rule, pairs, found):
    """Compare the rows of joined groups with all other groups, until the budget is used up.

    Returns:
        (the rows that were not compared with all others, the pairs, their number).
    """
    groups = bounds.size - 1
    apart = np.empty(groups, np.int64)
    for g in range(groups):
        apart[g] = g
    queue = np.empty(some.size, np.int32)
    first, last = 0, np.int64(0)
    while groups > 0 and budget > 0:
        if first == last:
            groups -= 1
            last = _queued(some, bounds, apart[groups], queue, last)
        row = queue[first]
        first += 1
        kept = 0
        for g in apart[:groups]:
            partner = -1
            for other in some[bounds[g] : bounds[g + 1]]:
                budget -= 1
                if confirmed(row, other, rows, rule)[0] and share_enough_hashes(row, other, rows):
                    partner = other
                    break
            if partner < 0:
                apart[kept] = g
                kept += 1
                continue
            pairs, found = joined(row, partner, parents, pairs, found)
            last = _queued(some, bounds, g, queue, last)
        groups = kept
    if groups == 0:
        return some[:0].copy(), pairs, found
    for g in apart[:groups]:
        last = _queued(some, bounds, g, queue, last)
    return queue[first:last].copy(), pairs, found


@inner
def _queued(some, bounds, group, queue, last):
    size = bounds[group + 1] - bounds[group]
    for i in range(size):
        queue[last + i] = some[bounds[group] + i]
    return last + size
