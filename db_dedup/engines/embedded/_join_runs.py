"""The compiled kernels that join rows which share a band.

A run is all the rows that agree in a band. Most runs are short, and comparing all of a run is cheapest. One
of many near-equal rows is joined from a few of them: rows of one group need no comparison. What is left is a
long run of rows that are not alike, such as letters from one template: there, each row is looked for among
the rarest features of the others, of which two similar rows have at least one in common.
"""

import numba as nb
import numpy as np

from db_dedup.engines.embedded._confirm import confirmed, resized
from db_dedup.flow.groups import find_root
from db_dedup.flow.similarity import least_shared

# So many comparisons for each row of a run, before its features are indexed.
_COMPARISONS_A_ROW = 200
_MOST_BUCKETS = 1 << 22


@nb.njit(cache=True, nogil=True)
def join_runs(rows, starts, parents, rule):  # type: ignore[no-untyped-def]
    """Join the groups of every confirmed pair within each run of rows.

    Returns:
        (left, right) rows of the pairs that joined two groups.
    """
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), 0
    for run in range(starts.size - 1):
        some, bounds = _by_group(rows[starts[run] : starts[run + 1]], parents)
        if bounds.size == 2:
            continue
        some, pairs, found = _compare_groups(some, bounds, parents, rule, pairs, found)
        if some.size:
            pairs, found = _search_features(some, parents, rule, pairs, found)
    left, right = pairs
    return left[:found].copy(), right[:found].copy()


@nb.njit(cache=True, nogil=True)
def _by_group(some, parents):  # type: ignore[no-untyped-def]
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
def _compare_groups(some, bounds, parents, rule, pairs, found):  # type: ignore[no-untyped-def]
    """Compare row by row with the groups that are still apart, as long as that is worth it.

    Returns:
        (the rows that have not been compared with all others, pairs, how many pairs there are).
    """
    apart = np.arange(bounds.size - 1)
    groups = apart.size
    queue = np.empty(some.size, np.int32)
    first, last = 0, 0
    budget = _COMPARISONS_A_ROW * some.size
    can_search = least_shared(rule[0], rule[1], 1) > 0
    while groups > 0 and (budget > 0 or not can_search):
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
                if confirmed(row, other, rule)[0]:
                    partner = other
                    break
            if partner < 0:
                apart[kept] = g
                kept += 1
                continue
            pairs, found = _joined(row, partner, parents, pairs, found)
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
def _joined(a, b, parents, pairs, found):  # type: ignore[no-untyped-def]
    """Join the groups of two rows; (pairs with this one, how many there are)."""
    root_a, root_b = find_root(parents, a), find_root(parents, b)
    parents[max(root_a, root_b)] = min(root_a, root_b)
    left, right = pairs
    if found == left.size:
        left, right = resized(left, 2 * found), resized(right, 2 * found)
    left[found], right[found] = a, b
    return (left, right), found + 1


@nb.njit(cache=True, nogil=True)
def _search_features(some, parents, rule, pairs, found):  # type: ignore[no-untyped-def]
    """Compare every two of these rows that have a rare feature of the smaller one in common.

    If two rows share at least s of the smaller one's n features, then any n - s + 1 of these hold one of the
    larger. So it is enough to index that many of each row, the rarest, and to look up all of every row.
    """
    _, _, _, places, starts, hashes, _, _, _ = rule
    some, bounds = _by_group(some, parents)
    group_ends = np.repeat(bounds[1:], np.diff(bounds))
    sizes = starts[places[some] + 1] - starts[places[some]]
    buckets = 1024
    while buckets < min(2 * sizes.sum(), _MOST_BUCKETS):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    first_of, indexed = _index(some, sizes, rule, mask)
    compared_with = np.full(some.size, -1, np.int64)
    for i in range(some.size):
        for feature in hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]:
            bucket = feature & mask
            place, end = first_of[bucket], first_of[bucket + np.uint64(1)]
            while place < end:
                j = indexed[place]
                place += 1
                if group_ends[j] == group_ends[i]:
                    # Of one group from the start: pass over all of it.
                    place += np.searchsorted(indexed[place:end], group_ends[i])
                    continue
                if compared_with[j] == i or sizes[j] > sizes[i] or (sizes[j] == sizes[i] and j > i):
                    continue
                compared_with[j] = i
                if find_root(parents, some[i]) == find_root(parents, some[j]):
                    continue
                if confirmed(some[i], some[j], rule)[0]:
                    pairs, found = _joined(some[i], some[j], parents, pairs, found)
    return pairs, found


@nb.njit(cache=True, nogil=True)
def _index(some, sizes, rule, mask):  # type: ignore[no-untyped-def]
    """(where each bucket of features begins, positions of the rows in the buckets of their rarest)."""
    measure, threshold, _, places, starts, hashes, _, _, _ = rule
    counts = np.zeros(mask + np.uint64(1), np.int64)
    for i in range(some.size):
        for feature in hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]:
            counts[feature & mask] += 1
    is_rare = np.zeros(sizes.sum(), np.bool_)
    first_of = np.zeros(counts.size + 1, np.int64)
    first = 0
    for i in range(some.size):
        own = hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]
        order = np.argsort(counts[own & mask])
        for k in order[: max(0, sizes[i] - least_shared(measure, threshold, sizes[i]) + 1)]:
            is_rare[first + k] = True
            first_of[(own[k] & mask) + np.uint64(1)] += 1
        first += sizes[i]
    first_of = np.cumsum(first_of)
    indexed = np.empty(first_of[-1], np.int64)
    used = first_of[:-1].copy()
    first = 0
    for i in range(some.size):
        for k, feature in enumerate(hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]):
            if is_rare[first + k]:
                indexed[used[feature & mask]] = i
                used[feature & mask] += 1
        first += sizes[i]
    return first_of, indexed
