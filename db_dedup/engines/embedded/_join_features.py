"""The compiled kernels that join rows by their rarest features: two similar rows have one of these in common.

For rows that share values with very many others they are not like.
"""

import numba as nb
import numpy as np

from db_dedup.engines.embedded._confirm import confirmed, sketches_meet
from db_dedup.engines.embedded._join_runs import by_group, joined
from db_dedup.flow.groups import find_root
from db_dedup.flow.similarity import least_shared

_MOST_BUCKETS = 1 << 22


@nb.njit(cache=True, nogil=True)
def index_rarest(some, parents, rule):  # type: ignore[no-untyped-def]
    """An index of these rows by their rarest features.

    If two rows share at least s of the smaller one's n features, then any n - s + 1 of these hold one of the
    larger. So it is enough to index that many of each row, the rarest, and to look up all of every row.

    Returns:
        (the rows, those of one group beside each other; where the group of each ends; how many features each
        has; where each bucket of features begins; positions of the rows in the buckets of their rarest).
    """
    measure, threshold, _, places, starts, hashes, _, _ = rule
    some, bounds = by_group(some, parents)
    ends = np.repeat(bounds[1:], np.diff(bounds)).astype(np.int32)
    sizes = starts[places[some] + 1] - starts[places[some]]
    buckets = 1024
    while buckets < min(2 * sizes.sum(), _MOST_BUCKETS):
        buckets *= 2
    mask = np.uint64(buckets - 1)
    counts = np.zeros(buckets, np.int64)
    for row in some:
        for feature in hashes[starts[places[row]] : starts[places[row] + 1]]:
            counts[feature & mask] += 1
    is_rare = np.zeros(sizes.sum(), np.bool_)
    first_of = np.zeros(buckets + 1, np.int64)
    first = 0
    for i in range(some.size):
        own = hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]
        order = np.argsort(counts[own & mask])
        for k in order[: max(0, sizes[i] - least_shared(measure, threshold, sizes[i]) + 1)]:
            is_rare[first + k] = True
            first_of[(own[k] & mask) + np.uint64(1)] += 1
        first += sizes[i]
    first_of = np.cumsum(first_of)
    indexed = np.empty(first_of[-1], np.int32)
    used = first_of[:-1].copy()
    first = 0
    for i in range(some.size):
        for k, feature in enumerate(hashes[starts[places[some[i]]] : starts[places[some[i]] + 1]]):
            if is_rare[first + k]:
                indexed[used[feature & mask]] = i
                used[feature & mask] += 1
        first += sizes[i]
    return some, ends, sizes, first_of, indexed


@nb.njit(cache=True, nogil=True)
def join_indexed(first, last, index, proposal, parents, rule):  # type: ignore[no-untyped-def]
    """Join the groups of confirmed pairs of rows whose sketches meet, one of them from first to last in the
    index, the other no larger.

    Args:
        first: position in the index.
        last: the one behind the last.
        index: as `index_rarest` gave it.
        proposal: as everywhere.
        parents: of all rows.
        rule: as everywhere.

    Returns:
        (left, right) rows of the pairs that joined two groups.
    """
    some, ends, sizes, first_of, indexed = index
    _, _, _, places, starts, hashes, _, _ = rule
    mask = np.uint64(first_of.size - 2)
    pairs, found = (np.empty(1024, np.int32), np.empty(1024, np.int32)), 0
    compared_with = np.full(some.size, -1, np.int32)
    for i in range(first, last):
        a = some[i]
        for feature in hashes[starts[places[a]] : starts[places[a] + 1]]:
            bucket = feature & mask
            place, end = first_of[bucket], first_of[bucket + np.uint64(1)]
            while place < end:
                j = indexed[place]
                place += 1
                if ends[j] == ends[i]:
                    # Of one group from the start: pass over all of it.
                    place += np.searchsorted(indexed[place:end], ends[i])
                    continue
                if compared_with[j] == i or sizes[j] > sizes[i] or (sizes[j] == sizes[i] and j > i):
                    continue
                compared_with[j] = i
                b = some[j]
                if find_root(parents, a) == find_root(parents, b):
                    continue
                if confirmed(a, b, rule)[0] and sketches_meet(a, b, proposal):
                    pairs, found = joined(a, b, parents, pairs, found)
    left, right = pairs
    return left[:found].copy(), right[:found].copy()
