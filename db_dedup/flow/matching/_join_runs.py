"""The compiled kernels that join rows which share a value of their sketches, run by run.

A run is all the rows with the same value. Most runs are short, and comparing all pairs of a run is cheapest.
Of a longer run only those pairs are compared that share enough other hashes (`_shared_hashes`). A very long
run of near-equal rows is joined by a few comparisons, since rows of one group need no comparison. A very long
run of rows that are not alike, such as letters with the same set phrase, is left to `_join_features`. Of the
short rows of any run every two are compared.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import stable_order
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.compare.kernels import least_shared
from db_dedup.flow.matching._bitmaps import copied_sets, misses_more
from db_dedup.flow.matching._join_short import (
    are_pair,
    bounds_of_short,
    compare_each,
    compare_short,
    join_if_pair,
)
from db_dedup.flow.matching._shared_hashes import (
    RunHash,
    count_steps,
    find_sharing,
    index_sharing,
    is_compared_elsewhere,
)
from db_dedup.flow.matching.groups import by_group, find_root, join, no_joins, noted

_STEPS_A_COMPARISON = 16
"""So many steps of counting shared hashes take as long as a comparison of two bit sets."""

_ROWS_AN_UPDATE = 64
"""After so many rows it is looked which rows of a long run were joined by then."""


class _Run(NamedTuple):
    """n rows of a run, the one with the most features first.

    Attributes:
        run_hash: that all of them have.
        rows: int32[n], row numbers.
        sizes: int64[n], how many features each row has.
        roots: int32[n], the group of each row, as it was a while ago.
        shorts: bool[n], which rows are short.
        firsts: int64[n + 1], where the bit set of each row begins.
        sets: uint64[w], copies of these sets, one after the other, so that they are in the cache.
    """

    run_hash: RunHash
    rows: NDArray[np.int32]
    sizes: NDArray[np.int64]
    roots: NDArray[np.int32]
    shorts: NDArray[np.bool_]
    firsts: NDArray[np.int64]
    sets: NDArray[np.uint64]


@kernel
def join_runs(
    run_rows, starts, hashes, frequencies, shortest_counted, is_counted, longest, bitmaps, parents, rows, rule
):
    """Join the groups of confirmed pairs within each run of rows, but for those that are left to others.

    Args:
        run_rows: row numbers, run by run.
        starts: the position where each run starts, and the end of the last run.
        hashes: uint64[r], the hash of each run.
        frequencies: by `count_odd`.
        shortest_counted: runs of fewer rows are not counted.
        is_counted: bool[r], the runs that are left to `join_counted`.
        longest: the most rows of another run in which every two rows are compared.
        bitmaps: of all rows, by `make_bitmaps`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`; two rows of a run share a hash, but perhaps not enough hashes.
        rule: `RuleNumbers`.

    Returns:
        (left, right) row numbers of the pairs that joined two groups, and bool[r]: the runs that are left, of
        which those that are not counted are for `join_alike` and `_join_features`.
    """
    joins = no_joins(parents)
    is_left = zeros(starts.size - 1, np.bool_)
    bounds = bounds_of_short(rule)
    compares_all = can_search(rule)
    for run in range(starts.size - 1):
        some = run_rows[starts[run] : starts[run + 1]]
        if _are_joined(some, parents):
            continue
        run_hash = RunHash(hashes[run], frequencies, shortest_counted)
        if some.size == 2:
            compare_each(some, run_hash, bitmaps, parents, rows, rule, joins)
            continue
        some, _ = by_group(some, parents)
        if rule.short_threshold > 0:
            others = compare_short(some, run_hash, bounds, bitmaps, parents, rows, rule, joins)
            if others == 0:
                continue
        if is_counted[run] or some.size > longest:
            is_left[run] = True
        elif compares_all:
            _compare_all(some, run_hash, bitmaps, parents, rows, rule, joins)
        else:
            compare_each(some, run_hash, bitmaps, parents, rows, rule, joins)
    left, right = noted(joins)
    return left, right, is_left


@kernel
def join_counted(
    run_rows,
    starts,
    hashes,
    frequencies,
    shortest_counted,
    chosen,
    most_comparisons,
    bitmaps,
    parents,
    rows,
    rule,
):
    """Join the groups of confirmed pairs within some runs, by the other hashes that their rows share.

    Two short rows of a run are compared by `join_runs`.

    Args:
        run_rows: row numbers, run by run.
        starts: the position where each run starts, and the end of the last run.
        hashes: uint64[r], the hash of each run; those of the chosen runs are odd.
        frequencies: by `count_odd`.
        shortest_counted: runs of fewer rows are not counted.
        chosen: the numbers of the runs.
        most_comparisons: int64[r], with more of them a run is given up; `_STEPS_A_COMPARISON` steps of
            counting are as good as one.
        bitmaps: of all rows, by `make_bitmaps`.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`, with a bound.

    Returns:
        (left, right) row numbers of the pairs that joined two groups, and bool[c]: which of the chosen runs
        were given up.
    """
    joins = no_joins(parents)
    is_left = zeros(chosen.size, np.bool_)
    for c in range(chosen.size):
        some = run_rows[starts[chosen[c]] : starts[chosen[c] + 1]]
        if _are_joined(some, parents):
            continue
        run_hash = RunHash(hashes[chosen[c]], frequencies, shortest_counted)
        run = _copied(some, run_hash, bitmaps, parents)
        own, near = empty(run.firsts[1], np.uint64), empty(some.size, np.int64)
        index = index_sharing(run.rows, run_hash, rows)
        budget = most_comparisons[chosen[c]] - count_steps(index) // _STEPS_A_COMPARISON
        for i in range(some.size - 1):
            if budget < 0:
                is_left[c] = True
                break
            if i % _ROWS_AN_UPDATE == 0:
                _write_roots(run, parents)
            count = find_sharing(i, index, near)
            budget -= count
            _compare_near(i, count, near, own, run, bitmaps, parents, rows, rule, joins)
    left, right = noted(joins)
    return left, right, is_left


@kernel
def can_search(rule):
    """Return whether the rule tells how many features a pair must share, so that rare ones find it."""
    return least_shared(rule.measure, rule.threshold, np.int64(1), np.int64(1)) > 0


@kernel
def join_all(some, run_hash, bitmaps, parents, rows, rule):
    """Join the groups of confirmed pairs within one run, by comparing every two of its rows.

    Two short rows of a run are compared by `join_runs`. `run_hash` is the `RunHash` of the run; the other
    arguments and what is returned are those of `join_alike`, without the rows.
    """
    joins = no_joins(parents)
    _compare_all(some, run_hash, bitmaps, parents, rows, rule, joins)
    return noted(joins)


@kernel
def join_alike(some, comparisons_a_row, parents, rows, rule):
    """Join the groups of confirmed pairs within a long run of rows, within a budget of comparisons.

    Args:
        some: int32[r], the row numbers of the run.
        comparisons_a_row: the most comparisons for each row; any number if the rule has no bound.
        parents: int32[n], the union-find parents of all rows.
        rows: `RowArrays`.
        rule: `RuleNumbers`.

    Returns:
        (the rows that were not compared with all others: two of these may be a pair that is not joined yet;
        the left and the right row numbers of the pairs that joined two groups).
    """
    joins = no_joins(parents)
    some, bounds = by_group(some, parents)
    budget = comparisons_a_row * some.size if can_search(rule) else np.iinfo(np.int64).max
    some = _compare_groups(some, bounds, budget, parents, rows, rule, joins)
    left, right = noted(joins)
    return some, left, right


@inner
def _are_joined(some, parents):
    """Return whether all rows are of one group."""
    root = find_root(parents, some[0])
    for row in some[1:]:  # noqa: SIM110 - numba has no all()
        if find_root(parents, row) != root:
            return False
    return True


@allocating
def _compare_all(some, run_hash, bitmaps, parents, rows, rule, joins):
    """Compare every two rows of different groups."""
    run = _copied(some, run_hash, bitmaps, parents)
    own, near = empty(run.firsts[1], np.uint64), empty(some.size, np.int64)
    for i in range(some.size - 1):
        count = some.size - 1 - i
        for k in range(count):
            near[k] = i + 1 + k
        _compare_near(i, count, near, own, run, bitmaps, parents, rows, rule, joins)


@allocating
def _copied(some, run_hash, bitmaps, parents):
    """Return the `_Run` of some rows."""
    some, sizes = _by_size(some, bitmaps)
    shorts = empty(some.size, np.bool_)
    for i in range(some.size):
        shorts[i] = bitmaps.lengths[some[i]] > 0
    firsts, sets = copied_sets(some, bitmaps)
    run = _Run(run_hash, some, sizes, empty(some.size, np.int32), shorts, firsts, sets)
    _write_roots(run, parents)
    return run


@inner
def _write_roots(run, parents):
    """Write the group of each row as it is now."""
    for i in range(run.rows.size):
        run.roots[i] = find_root(parents, run.rows[i])


@inner
def _compare_near(i, count, near, own, run, bitmaps, parents, rows, rule, joins):
    """Compare row i with the rows at the first `count` positions in `near`.

    Nearly all of them are rejected by the bit sets of their features. To read the features of each two rows
    would take fifty times as long.
    """
    for k in range(_keep_near(i, count, near, own, run, rule)):
        j = near[k]
        a, b = run.rows[i], run.rows[j]
        if find_root(parents, a) == find_root(parents, b) or is_compared_elsewhere(a, b, run.run_hash, rows):
            continue
        words = run.firsts[j + 1] - run.firsts[j]
        _write_set(i, words, run, own)
        least = least_shared(rule.measure, rule.threshold, run.sizes[i], run.sizes[j])
        if misses_more(own, 0, run.sets, run.firsts[j], words, run.sizes[i] - least):
            continue
        join_if_pair(a, b, bitmaps, parents, rows, rule, joins)


@inner
def _write_set(i, words, run, own):
    """Write to `own` the set of one row, joined to so many words; return their number."""
    size = run.firsts[i + 1] - run.firsts[i]
    for k in range(size):
        own[k] = run.sets[run.firsts[i] + k]
    while size > words:
        size >>= 1
        for k in range(size):
            own[k] |= own[size + k]
    return size


@inner
def _keep_near(i, count, near, own, run, rule):
    """Keep those of some positions after i whose rows may be pairs with row i; return their number.

    These rows have at most as many features as row i. One that misses more of its features in row i than the
    measure allows is no pair.

    Args:
        i: the position of a row.
        count: how many positions.
        near: int64[n], ascending positions, overwritten.
        own: uint64[w], overwritten with the set of row i.
        run: `_Run`.
        rule: `RuleNumbers`.
    """
    roots, shorts, sizes, firsts = run.roots, run.shorts, run.sizes, run.firsts
    kept, size, most = 0, np.int64(-1), np.int64(0)
    words = _write_set(i, firsts[i + 1] - firsts[i], run, own)
    for k in range(count):
        j = near[k]
        if roots[i] == roots[j] or (shorts[i] and shorts[j]):
            continue  # joined before, or compared by `compare_short`
        if size != sizes[j]:
            size = sizes[j]
            most = size - least_shared(rule.measure, rule.threshold, sizes[i], size)
        if words > firsts[j + 1] - firsts[j]:
            words = _write_set(i, firsts[j + 1] - firsts[j], run, own)
        if not misses_more(run.sets, firsts[j], own, 0, words, most):
            near[kept] = j
            kept += 1
    return kept


@allocating
def _by_size(some, bitmaps):
    """Return (the rows, the one with the most features first, the numbers of their features)."""
    keys = empty(some.size, np.int64)
    for i in range(some.size):
        keys[i] = -np.int64(bitmaps.sizes[some[i]])
    order = stable_order(keys)
    ordered, sizes = empty(some.size, np.int32), empty(some.size, np.int64)
    for i in range(some.size):
        ordered[i], sizes[i] = some[order[i]], -keys[order[i]]
    return ordered, sizes


@allocating
def _compare_groups(some, bounds, budget, parents, rows, rule, joins):
    """Compare the rows of joined groups with all other groups, until the budget is used up.

    Returns:
        the rows that were not compared with all others.
    """
    groups = bounds.size - 1
    apart = empty(groups, np.int64)
    for g in range(groups):
        apart[g] = g
    queue = empty(some.size, np.int32)
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
                if are_pair(row, other, rows, rule):
                    partner = other
                    break
            if partner < 0:
                apart[kept] = g
                kept += 1
                continue
            join(row, partner, parents, joins)
            last = _queued(some, bounds, g, queue, last)
        groups = kept
    if groups == 0:
        return some[:0].copy()
    for g in apart[:groups]:
        last = _queued(some, bounds, g, queue, last)
    return queue[first:last].copy()


@inner
def _queued(some, bounds, group, queue, last):
    size = bounds[group + 1] - bounds[group]
    for i in range(size):
        queue[last + i] = some[bounds[group] + i]
    return last + size
