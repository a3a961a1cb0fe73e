"""Step 7: groups are the connected components of the pairs, kept while the pairs are found.

Union-find whose roots are the smallest row number of their group: with rows numbered in the order they were
received, the root is the group's representative. It lives beside the search because the search asks it which
rows are already joined; scipy gives the same components only once all pairs are known.
"""

import numba as nb
import numpy as np
from numpy.typing import NDArray


def flatten(parents: NDArray[np.int32]) -> None:
    """Let every row point straight at its root, in place."""
    _flatten(parents)


def group_sizes(roots: NDArray[np.int32]) -> NDArray[np.int64]:
    """int64[n]: at each root the size of its group, 0 elsewhere. Takes flattened parents."""
    return np.bincount(roots, minlength=roots.size).astype(np.int64)


@nb.njit(cache=True, nogil=True)
def find_root(parents, row):  # type: ignore[no-untyped-def]
    """The root of a row's group; halves the path on its way."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@nb.njit(cache=True, nogil=True)
def _flatten(parents):  # type: ignore[no-untyped-def]
    # A parent is never larger than its child, so one pass upwards is enough.
    for row in range(parents.size):
        parents[row] = parents[parents[row]]
