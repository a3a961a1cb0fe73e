"""Step 7: groups are the connected components of the pairs, updated while the pairs are found.

They are kept by union-find. The root of a group is its smallest row number. Rows are numbered in the order
they were received, so the root is the group's representative. The search needs to know at any time which rows
are joined already; scipy computes the same components only when all pairs are known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import stable_order
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros


class Joins(NamedTuple):
    """The pairs that joined two groups of n rows, noted while they are found.

    They are fewer than n, so there is room for all: what is not written takes no memory.

    Attributes:
        left: int32[n], row numbers.
        right: int32[n], row numbers.
        found: int64[1], how many pairs there are.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    found: NDArray[np.int64]


def flatten(parents: NDArray[np.int32]) -> None:
    """Set the parent of every row to its root, in place."""
    _flatten(parents)


def group_sizes(roots: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return int64[n]: at each root the size of its group, 0 elsewhere; the parents must be flattened."""
    return np.bincount(roots, minlength=roots.size).astype(np.int64)


def connected(count: int, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return int32[count]: the smallest row that each row is connected with by pairs, itself if by none."""
    parents = np.arange(count, dtype=np.int32)
    join_pairs(left, right, parents)
    flatten(parents)
    return parents


@kernel
def join_pairs(left, right, parents):
    """Join the groups of p pairs; return bool[p], True for those that joined two different groups."""
    are_joining = zeros(left.size, np.bool_)
    for i in range(left.size):
        a, b = find_root(parents, left[i]), find_root(parents, right[i])
        parents[max(a, b)] = min(a, b)
        are_joining[i] = a != b
    return are_joining


@inner
def find_root(parents, row):
    """Return the root of a row's group, and halve the path to it."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@kernel
def _flatten(parents):
    # A parent is never larger than its child, so one pass upwards is enough.
    for row in range(parents.size):
        parents[row] = parents[parents[row]]


@allocating
def no_joins(parents):
    """Return `Joins` for these groups."""
    return Joins(empty(parents.size, np.int32), empty(parents.size, np.int32), zeros(1, np.int64))


@inner
def join(a, b, parents, joins):
    """Join the groups of two rows, which are in different groups, and note the pair."""
    root_a, root_b = find_root(parents, a), find_root(parents, b)
    parents[max(root_a, root_b)] = min(root_a, root_b)
    joins.left[joins.found[0]], joins.right[joins.found[0]] = a, b
    joins.found[0] += 1


@allocating
def noted(joins):
    """Return (left, right) of the pairs that were noted."""
    return joins.left[: joins.found[0]].copy(), joins.right[: joins.found[0]].copy()


@allocating
def by_group(some, parents):
    """Sort rows by their groups.

    Returns:
        (the sorted rows, the g + 1 bounds of the g groups).
    """
    roots = empty(some.size, np.int64)
    for i in range(some.size):
        roots[i] = find_root(parents, some[i])
    order = stable_order(roots)
    by_root = empty(some.size, np.int32)
    bounds = empty(some.size + 1, np.int64)
    groups = 0
    for i in range(some.size):
        by_root[i] = some[order[i]]
        if i == 0 or roots[order[i]] != roots[order[i - 1]]:
            bounds[groups] = i
            groups += 1
    bounds[groups] = some.size
    return by_root, bounds[: groups + 1].copy()
