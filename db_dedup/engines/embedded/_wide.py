"""The compiled kernels of `wide_table`."""

import numba as nb
import numpy as np

from db_dedup.flow.sketches import have_common_value


@nb.njit(cache=True, nogil=True)
def pairs_in_runs(rows, starts, at_most):  # type: ignore[no-untyped-def]
    """(left, right) of every pair of rows within each run, but no more than so many."""
    count = 0
    for run in range(starts.size - 1):
        size = starts[run + 1] - starts[run]
        count = min(at_most, count + size * (size - 1) // 2)
    left, right = np.empty(count, np.int32), np.empty(count, np.int32)
    found = 0
    for run in range(starts.size - 1):
        for i in range(starts[run], starts[run + 1]):
            for j in range(i + 1, starts[run + 1]):
                if found == count:
                    return left, right
                left[found], right[found] = rows[i], rows[j]
                found += 1
    return left, right


@nb.njit(cache=True, nogil=True)
def share_values(starts, values, left, right):  # type: ignore[no-untyped-def]
    """bool[p]: whether the sketches of left[i] and right[i] have a value in common."""
    result = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        result[p] = have_common_value(starts, values, left[p], right[p])
    return result
