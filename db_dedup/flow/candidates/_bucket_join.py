"""The compiled kernels of `blocks`: sort rows into buckets, compare bucket with bucket.

numba was the fastest way that was measured: all pairs within 7 bits of a million fingerprints in under a
second on one core.

A side of a join, a or b, is the tuple that `bucket_rows` or `sort_by_label` returns. `done` is (uint64 masks,
int64 radii): pairs whose difference under a mask is within its radius were found by an earlier block.
"""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from db_dedup.flow._arrays import resized
from db_dedup.flow._compiled import inner, kernel

_BUCKETS = 1 << 16


@intrinsic
def _popcount(typing_context, value):  # noqa: ARG001 - numba's signature
    """Return the number of bits set in a uint64, by one machine instruction."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# To mypy an intrinsic has the signature of the function that makes it, typing context included.
popcount: Any = _popcount


@kernel
def bucket_rows(values, rows, shift):
    """Sort rows by the value of a block, by a counting sort.

    Returns:
        (fingerprints in that order, row numbers in that order, int64[65537] where each bucket starts).
    """
    starts = np.zeros(_BUCKETS + 1, np.int64)
    for row in rows:
        starts[((values[row] >> np.uint64(shift)) & np.uint64(0xFFFF)) + np.uint64(1)] += 1
    for i in range(_BUCKETS):
        starts[i + 1] += starts[i]
    fill = starts[:-1].copy()
    sorted_values = np.empty(rows.size, np.uint64)
    sorted_rows = np.empty(rows.size, np.int32)
    for row in rows:
        bucket = np.int64((values[row] >> np.uint64(shift)) & np.uint64(0xFFFF))
        place = fill[bucket]
        fill[bucket] = place + 1
        sorted_values[place] = values[row]
        sorted_rows[place] = row
    return sorted_values, sorted_rows, starts


def sort_by_label(
    values: NDArray[np.uint64], labels: NDArray[np.int32], rows: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """Sort rows by their labels, so that the rows of a group are neighbours.

    It is not compiled: numba's argsort takes seconds to compile.

    Returns:
        (fingerprints in that order, row numbers in that order, int64 end of each row's run of equal labels).
    """
    sorted_rows = rows[np.argsort(labels[rows], kind="stable")]
    sorted_labels = labels[sorted_rows]
    ends = np.append(np.flatnonzero(sorted_labels[1:] != sorted_labels[:-1]) + 1, rows.size)
    return values[sorted_rows], sorted_rows, np.repeat(ends, np.diff(ends, prepend=0))


@inner
def _found_earlier(difference, done):
    masks, radii = done
    for i in range(masks.size):  # noqa: SIM110 - numba has no any()
        if popcount(difference & masks[i]) <= np.uint64(radii[i]):
            return True
    return False


@inner
def _compare_runs(
    values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
    labels, limit, done, left, right, found,
):  # fmt: skip
    """Compare a run of rows of a with a run of b.

    These innermost loops allocate nothing: with an allocation in them they run ten times slower.

    Returns:
        The number of pairs found so far, or -1 if left and right are too short.
    """
    for i in range(a_start, a_end):
        value = values_a[i]
        first = i + 1 if is_same else b_start
        # Nearly no run has a hit, and a loop that only counts has no branch to predict.
        hits = 0
        for j in range(np.uint64(first), np.uint64(b_end)):
            hits += popcount(value ^ values_b[j]) <= limit
        if hits == 0:
            continue
        for j in range(first, b_end):
            difference = value ^ values_b[j]
            if popcount(difference) > limit:
                continue
            row, partner = rows_a[i], rows_b[j]
            if labels[row] == labels[partner] or _found_earlier(difference, done):
                continue
            if found == left.size:
                return -1
            left[found] = min(row, partner)
            right[found] = max(row, partner)
            found += 1
    return found


@inner
def _with_room(hot):
    """Return an array twice as long that begins with these pairs of buckets."""
    bigger = np.empty((hot.shape[0] * 2, 2), np.int64)
    for i in range(hot.shape[0]):
        bigger[i, 0], bigger[i, 1] = hot[i, 0], hot[i, 1]
    return bigger


@kernel
def join_buckets(a, b, is_self, labels, first_bucket, masks, radius, done, hot_comparisons, chunk):
    """Compare each bucket of a with the buckets of b whose value differs by a mask.

    If a side is joined with itself, each pair of buckets is visited once. The search stops after the bucket
    with which `chunk` pairs are found.

    Returns:
        (next bucket, left rows, right rows, int64[h, 2] pairs of buckets with too many comparisons, which are
        left to the caller).
    """
    values_a, rows_a, starts_a = a
    values_b, rows_b, starts_b = b
    left, right = np.empty(1024, np.int32), np.empty(1024, np.int32)
    hot = np.empty((16, 2), np.int64)
    found, hot_count = np.int64(0), 0
    bucket = first_bucket
    limit = np.uint64(radius)
    while bucket < _BUCKETS and found < chunk:
        a_start, a_end = starts_a[bucket], starts_a[bucket + 1]
        if a_start == a_end:
            bucket += 1
            continue
        for mask in masks:
            other = bucket ^ mask
            if is_self and other < bucket:
                continue
            b_start, b_end = starts_b[other], starts_b[other + 1]
            if b_start == b_end:
                continue
            is_same = is_self and mask == 0
            comparisons = (a_end - a_start) * (b_end - b_start)
            if comparisons > 2 * hot_comparisons or (comparisons > hot_comparisons and not is_same):
                if hot_count == hot.shape[0]:
                    hot = _with_room(hot)
                hot[hot_count, 0] = bucket
                hot[hot_count, 1] = other
                hot_count += 1
                continue
            while True:
                after = _compare_runs(
                    values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
                    labels, limit, done, left, right, found,
                )  # fmt: skip
                if after >= 0:
                    found = after
                    break
                left, right = resized(left, 2 * left.size), resized(right, 2 * right.size)
        bucket += 1
    return bucket, left[:found].copy(), right[:found].copy(), hot[:hot_count].copy()


@kernel
def compare_all(a, b, is_self, labels, first, radius, done, chunk):
    """Compare each row of a with each row of b, a run of rows of one label at a time.

    Both sides are sorted by their labels, so that a run with the row's own label is skipped as a whole.

    Returns:
        (next position in a, left rows, right rows).
    """
    values_a, rows_a, run_ends_a = a
    values_b, rows_b, run_ends_b = b
    left, right = np.empty(1024, np.int32), np.empty(1024, np.int32)
    found = 0
    limit = np.uint64(radius)
    i = first
    while i < rows_a.size and found < chunk:
        row = rows_a[i]
        j = run_ends_a[i] if is_self else 0
        while j < rows_b.size:
            run_end = run_ends_b[j]
            if labels[rows_b[j]] == labels[row]:
                j = run_end
                continue
            while True:
                after = _compare_runs(
                    values_a, rows_a, i, i + 1, values_b, rows_b, j, run_end, False,
                    labels, limit, done, left, right, found,
                )  # fmt: skip
                if after >= 0:
                    found = after
                    break
                left, right = resized(left, 2 * left.size), resized(right, 2 * right.size)
            j = run_end
        i += 1
    return i, left[:found].copy(), right[:found].copy()
