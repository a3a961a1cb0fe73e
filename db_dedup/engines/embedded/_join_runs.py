"""The compiled kernels that join rows which share a value of their sketches, run by run.

A run is all the rows that agree in a value. Most runs are short, and comparing all of a run is cheapest. One
of many near-equal rows is joined from a few of them: rows of one group need no comparison. What is left are
runs of rows that are not alike, such as letters with the same set phrase.
"""

import numba as nb
import numpy as np

from db_dedup.engines.embedded._confirm import confirmed, resized, sketches_meet
from db_dedup.flow.groups import find_root
from db_dedup.flow.similarity import least_shared, least_shared_of


@nb.njit(cache=True, nogil=True)
def join_runs(rows, starts, budget, unlike, proposal, parents, rule):  # type: ignore[no-untyped-def]
    """Join the groups of confirmed pairs within each run of rows, as long as comparing them is worth it.

    Args:
        rows: run by run.
        starts: where each run starts.
        budget: (rows of the longest run in which every two rows may be compared, comparisons for each row of
            a longer one).
        unlike: bool, becomes True at the rows that have not been compared with all others of a run: two of
            these may be a pair that is not joined yet.
        proposal: as everywhere; two rows of a run have a value in common, which need not be enough.
        parents: of all rows.
        rule: as everywhere.

    Returns:
        (left, right) rows of the pairs that joined two groups.
    """
    longest, comparisons_a_row = budget
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), 0
    can_search = least_shared(rule[0], rule[1], 1) > 0
    for run in range(starts.size - 1):
        some, bounds = by_group(rows[starts[run] : starts[run + 1]], parents)
        if bounds.size == 2:
            continue
        if can_search and some.size <= longest:
            pairs, found = _compare_all(some, proposal, parents, rule, pairs, found)
            continue
        budget_of_run = comparisons_a_row * some.size if can_search else np.iinfo(np.int64).max
        some, pairs, found = _compare_groups(
            some, bounds, budget_of_run, proposal, parents, rule, pairs, found
        )
        unlike[some] = True
    left, right = pairs
    return left[:found].copy(), right[:found].copy()


@nb.njit(cache=True, nogil=True)
def by_group(some, parents):  # type: ignore[no-untyped-def]
    """(the rows, those of one group beside each other; where each of g groups begins, g + 1 places)."""
    roots = np.empty(some.size, np.int32)
    for i in range(some.size):
        roots[i] = find_root(parents, some[i])
    order = np.argsort(roots, kind="mergesort")
    bounds = np.empty(some.size + 1, np.int64)
    groups = 0
    for i in range(some.size):
        if i == 0 or roots[order[i]] != roots[order[i - 1]]:
            bounds[groups] = i
            groups += 1
    bounds[groups] = some.size
    return some[order], bounds[: groups + 1].copy()


@nb.njit(cache=True, nogil=True)
def _compare_all(some, proposal, parents, rule, pairs, found):  # type: ignore[no-untyped-def]
    """Compare every two rows of different groups; (pairs, how many there are)."""
    measure, threshold, _, places, starts, hashes, _, _ = rule
    sizes = starts[places[some] + 1] - starts[places[some]]
    # The larger one first: what it lacks of the other shows after a few features.
    order = np.argsort(-sizes, kind="mergesort")
    some, sizes = some[order], sizes[order]
    roots = np.empty(some.size, np.int32)
    for i in range(some.size):
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
            least = least_shared_of(measure, threshold, sizes[i], sizes[j])
            features = hashes[starts[places[some[j]]] : starts[places[some[j]] + 1]]
            if _lacks(own, features, sizes[j] - least):
                continue
            if confirmed(some[i], some[j], rule)[0] and sketches_meet(some[i], some[j], proposal):
                pairs, found = joined(some[i], some[j], parents, pairs, found)
    return pairs, found


@nb.njit(cache=True, nogil=True)
def _words(size):  # type: ignore[no-untyped-def]
    """How many words a bit set of so many features takes to be an eighth full at most: a power of two."""
    words = 1
    while words * 8 < size:
        words *= 2
    return words


@nb.njit(cache=True, nogil=True)
def _set_bits(words, features):  # type: ignore[no-untyped-def]
    """Set a bit for each feature."""
    last = np.uint64(words.size - 1)
    for feature in features:
        words[(feature >> np.uint64(6)) & last] |= np.uint64(1) << (feature & np.uint64(63))


@nb.njit(cache=True, nogil=True)
def _lacks(words, features, most):  # type: ignore[no-untyped-def]
    """Whether more than so many of the features are certainly not among those that set the bits."""
    last = np.uint64(words.size - 1)
    for feature in features:
        word = words[(feature >> np.uint64(6)) & last]
        most -= np.int64(((word >> (feature & np.uint64(63))) & np.uint64(1)) == np.uint64(0))
        if most < 0:
            return True
    return False


@nb.njit(cache=True, nogil=True)
def _compare_groups(some, bounds, budget, proposal, parents, rule, pairs, found):  # type: ignore[no-untyped-def]
    """Compare row by row with the groups that are still apart, as long as that is worth it.

    Returns:
        (the rows that have not been compared with all others, pairs, how many pairs there are).
    """
    apart = np.arange(bounds.size - 1)
    groups = apart.size
    queue = np.empty(some.size, np.int32)
    first, last = 0, 0
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
                if confirmed(row, other, rule)[0] and sketches_meet(row, other, proposal):
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


@nb.njit(cache=True, nogil=True)
def _queued(some, bounds, group, queue, last):  # type: ignore[no-untyped-def]
    size = bounds[group + 1] - bounds[group]
    queue[last : last + size] = some[bounds[group] : bounds[group + 1]]
    return last + size


@nb.njit(cache=True, nogil=True)
def joined(a, b, parents, pairs, found):  # type: ignore[no-untyped-def]
    """Join the groups of two rows; (pairs with this one, how many there are)."""
    root_a, root_b = find_root(parents, a), find_root(parents, b)
    parents[max(root_a, root_b)] = min(root_a, root_b)
    left, right = pairs
    if found == left.size:
        left, right = resized(left, 2 * found), resized(right, 2 * found)
    left[found], right[found] = a, b
    return (left, right), found + 1
