"""The compiled kernel of `measured_table`."""

import numpy as np

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty
from db_dedup.flow.candidates.sketches import share_enough


@kernel
def sharing_in_runs(rows, starts, chosen, run_values, sketch_starts, values, places, at_most):
    """Return (left, right) of the pairs of rows within some runs that share enough hashes, at most `at_most`.

    A pair is in a run for each hash that both rows have. It is taken from that of the least one.

    Args:
        rows: row numbers, run by run.
        starts: the position where each run starts, and the end of the last run.
        chosen: the numbers of the runs.
        run_values: the hash that the rows of each run have.
        sketch_starts: the sketches' slices of their values.
        values: ascending and distinct within a sketch.
        places: each row's number among the sketches.
        at_most: number of pairs.
    """
    count = 0
    for run in chosen:
        size = starts[run + 1] - starts[run]
        count = min(at_most, count + size * (size - 1) // 2)
    left, right = empty(count, np.int32), empty(count, np.int32)
    found = 0
    for run in chosen:
        for i in range(starts[run], starts[run + 1]):
            for j in range(i + 1, starts[run + 1]):
                if found == count:
                    return left, right
                a, b = places[rows[i]], places[rows[j]]
                is_least = _least_shared(sketch_starts, values, a, b) == run_values[run]
                if is_least and share_enough(sketch_starts, values, a, b):
                    left[found], right[found] = rows[i], rows[j]
                    found += 1
    return left[:found].copy(), right[:found].copy()


@inner
def _least_shared(starts, values, a, b):
    """Return the least hash that two sketches share, which share one."""
    i, j = starts[a], starts[b]
    while values[i] != values[j]:
        if values[i] < values[j]:
            i += 1
        else:
            j += 1
    return values[i]
