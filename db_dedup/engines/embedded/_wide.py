"""The compiled kernels of `wide_table`."""

import numba as nb
import numpy as np

from db_dedup.flow.sketches import meet


@nb.njit(cache=True, nogil=True)
def meeting_pairs(rows, starts, sketches, at_most):  # type: ignore[no-untyped-def]
    """(left, right) of every pair of rows within each run whose sketches meet, but no more than so many.

    Args:
        rows: run by run.
        starts: where each run starts.
        sketches: starts, values, and each row's place among them.
        at_most: pairs.
    """
    sketch_starts, values, places = sketches
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
                if meet(sketch_starts, values, places[rows[i]], places[rows[j]]):
                    left[found], right[found] = rows[i], rows[j]
                    found += 1
    return left[:found].copy(), right[:found].copy()


@nb.njit(cache=True, nogil=True)
def are_meeting(starts, values, left, right):  # type: ignore[no-untyped-def]
    """bool[p]: whether the sketches of left[i] and right[i] meet."""
    result = np.zeros(left.size, np.bool_)
    for p in range(left.size):
        result[p] = meet(starts, values, left[p], right[p])
    return result
