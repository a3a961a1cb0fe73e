"""The compiled kernels of `candidates`: sort rows into buckets, compare bucket with bucket.

numba, because nothing measured was faster at this: all pairs within 7 bits of a million fingerprints in under
a second on one core.

A side of a join, a or b, is the tuple that `bucket_rows` or `sort_by_label` gives; `done` is (uint64 masks,
int64 radii): pairs that agree under a mask within its radius were found before.
"""

from typing import Any

import numba as nb
import numpy as np
from numba.core import types
from numba.extending import intrinsic

_BUCKETS = 1 << 16


@intrinsic
def _popcount(typing_context, value):  # type: ignore[no-untyped-def] # noqa: ARG001 - numba's signature
    """Number of bits set in a uint64, as one machine instruction."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def] # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# numba's own types take an intrinsic for a call of the function that makes it.
popcount: Any = _popcount


@nb.njit(cache=True, nogil=True)
def bucket_rows(values, rows, shift):  # type: ignore[no-untyped-def]
    """Counting sort of rows by their block's value.

    Returns:
        (values in that order, row numbers in that order, int64[65537] where each bucket starts).
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


@nb.njit(cache=True, nogil=True)
def sort_by_label(values, labels, rows):  # type: ignore[no-untyped-def]
    """Rows in the order of their labels, so that those of one group stand together.

    Returns:
        (values in that order, row numbers in that order, int64 end of each row's run of equal labels).
    """
    order = np.argsort(labels[rows], kind="mergesort")
    sorted_rows = rows[order]
    run_ends = np.empty(rows.size, np.int64)
    end = rows.size
    for i in range(rows.size - 1, -1, -1):
        if i + 1 < rows.size and labels[sorted_rows[i]] != labels[sorted_rows[i + 1]]:
            end = i + 1
        run_ends[i] = end
    return values[sorted_rows], sorted_rows, run_ends


@nb.njit(cache=True, nogil=True)
def _found_earlier(difference, done):  # type: ignore[no-untyped-def]
    masks, radii = done
    for i in range(masks.size):  # noqa: SIM110 - numba has no any()
        if popcount(difference & masks[i]) <= np.uint64(radii[i]):
            return True
    return False


@nb.njit(cache=True, nogil=True)
def _grown(array):  # type: ignore[no-untyped-def]
    bigger = np.empty(array.size * 2, array.dtype)
    bigger[: array.size] = array
    return bigger


@nb.njit(cache=True, nogil=True)
def _compare_runs(  # type: ignore[no-untyped-def]
    values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
    labels, limit, done, left, right, found,
):  # fmt: skip
    """The innermost loops, kept free of allocation: with it they run ten times slower.

    Returns:
        The number of pairs found so far, or -1 where left and right are too short.
    """
    for i in range(a_start, a_end):
        value = values_a[i]
        first = i + 1 if is_same else b_start
        # Nearly no run holds a hit, and a loop that only counts has no branch to guess.
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


@nb.njit(cache=True, nogil=True)
def join_buckets(  # type: ignore[no-untyped-def]
    a, b, is_self, labels, first_bucket, masks, radius, done, hot_comparisons, chunk
):
    """Compare each bucket of a with the buckets of b whose value differs by a mask.

    Joined with itself, a pair of buckets is visited once. Stops after the bucket that fills `chunk` pairs.

    Returns:
        (next bucket, left rows, right rows, int64[h, 2] hot pairs of buckets left to the caller).
    """
    values_a, rows_a, starts_a = a
    values_b, rows_b, starts_b = b
    left, right = np.empty(1024, np.int32), np.empty(1024, np.int32)
    hot = np.empty((16, 2), np.int64)
    found, hot_count = 0, 0
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
                    bigger = np.empty((hot_count * 2, 2), np.int64)
                    bigger[:hot_count] = hot
                    hot = bigger
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
                left, right = _grown(left), _grown(right)
        bucket += 1
    return bucket, left[:found].copy(), right[:found].copy(), hot[:hot_count].copy()


@nb.njit(cache=True, nogil=True)
def compare_all(  # type: ignore[no-untyped-def]
    a, b, is_self, labels, first, radius, done, chunk
):
    """Compare each row of a with each of b, a run of rows of one label at a time.

    Both sides stand in the order of their labels, so a run that has the row's own label is passed over whole.

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
                left, right = _grown(left), _grown(right)
            j = run_end
        i += 1
    return i, left[:found].copy(), right[:found].copy()
