"""The compiled kernels of `blocks`: sort rows into buckets, compare bucket with bucket.

numba was the fastest way that was measured: all pairs within 7 bits of a million fingerprints in under a
second on one core.

A side of a join, a or b, is the tuple that `bucket_rows` or `sort_by_label` returns. `done` is (uint64 masks,
int64 radii): pairs whose difference under a mask is within its radius were found by an earlier block.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from db_dedup.flow._arrays import resized
from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates._pieces import (
    MOST_ROWS,
    key_mask,
    make_room,
    plan,
    sort_by_piece,
)

_BUCKETS = 1 << 16
_HALVES = 1 << 8
"""How many values the upper or the lower half of a block has."""
_SORTED_AT_ONCE = 1 << 17
"""So many rows and more are sorted by one half after the other."""


class Limits(NamedTuple):
    """What decides how buckets are searched.

    Attributes:
        sorting: to sort a row by a piece and to compare it takes the time of so many comparisons.
        hot: two buckets that take more comparisons are left to the caller.
        chunk: the search stops after the bucket with which so many pairs are found.
    """

    sorting: int
    hot: int
    chunk: int


@intrinsic
def _popcount(typing_context, value):  # noqa: ARG001 - numba's signature
    """Return the number of bits set in a uint64, by one machine instruction."""

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# To mypy an intrinsic has the signature of the function that makes it, typing context included.
popcount: Any = _popcount


@inner
def _scatter(values, rows, shift, mask, starts, sorted_values, sorted_rows):
    """Sort rows by some bits of their fingerprints; `starts` moves to where the next value starts."""
    for i in range(rows.size):
        key = np.int64((values[i] >> np.uint64(shift)) & np.uint64(mask))
        place = starts[key]
        starts[key] = place + 1
        sorted_values[place] = values[i]
        sorted_rows[place] = rows[i]


@kernel
def bucket_rows(values, rows, shift):
    """Sort rows by the value of a block.

    Many rows are sorted by the upper half of the block, then those of each upper half by the lower half: to
    write at 65,536 places in turn takes ten times as long, since the processor keeps the addresses of far
    fewer pages.

    Returns:
        (fingerprints in that order, row numbers in that order, int64[65537] where each bucket starts).
    """
    starts = zeros(_BUCKETS + 1, np.int64)
    for row in rows:
        starts[((values[row] >> np.uint64(shift)) & np.uint64(0xFFFF)) + np.uint64(1)] += 1
    for i in range(_BUCKETS):
        starts[i + 1] += starts[i]
    sorted_values = empty(rows.size, np.uint64)
    sorted_rows = empty(rows.size, np.int32)
    in_one_step = rows.size < _SORTED_AT_ONCE
    places = starts[:-1].copy() if in_one_step else starts[:-1:_HALVES].copy()
    for row in rows:
        bucket = np.int64((values[row] >> np.uint64(shift)) & np.uint64(0xFFFF))
        half = bucket if in_one_step else bucket // _HALVES
        place = places[half]
        places[half] = place + 1
        sorted_values[place] = values[row]
        sorted_rows[place] = row
    if in_one_step:
        return sorted_values, sorted_rows, starts
    for first in range(0, _BUCKETS, _HALVES):
        start, end = starts[first], starts[first + _HALVES]
        some_values, some_rows = sorted_values[start:end].copy(), sorted_rows[start:end].copy()
        places = starts[first : first + _HALVES].copy()
        _scatter(some_values, some_rows, shift, _HALVES - 1, places, sorted_values, sorted_rows)
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
def _compare_keys(
    values_a, rows_a, starts_a, values_b, rows_b, starts_b, is_same,
    keys, labels, limit, done, left, right, found,
):  # fmt: skip
    """Compare the rows of a with those of b that have the same key: few, so that a plain loop is the fastest.

    Returns:
        As `_compare_runs`.
    """
    for key in range(keys):
        first, last = starts_b[key], starts_b[key + 1]
        for i in range(starts_a[key], starts_a[key + 1]):
            value = values_a[i]
            for j in range(i + 1 if is_same else first, last):
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


@allocating
def _join_pieces(
    values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
    pieces, room_a, room_b, labels, limit, done, left, right, found,
):  # fmt: skip
    """Compare the rows of two buckets that agree in a piece; a pair is found in the first such piece.

    Returns:
        As `_compare_runs`.
    """
    masks, radii = done
    other = room_a if is_same else room_b
    earlier = zeros(masks.size + pieces.number, np.uint64)
    earlier_radii = zeros(earlier.size, np.int64)
    for i in range(masks.size):
        earlier[i], earlier_radii[i] = masks[i], radii[i]
    for piece in range(pieces.number):
        sort_by_piece(values_a, rows_a, a_start, a_end, piece, pieces, room_a)
        if not is_same:
            sort_by_piece(values_b, rows_b, b_start, b_end, piece, pieces, room_b)
        known = earlier[: masks.size + piece], earlier_radii[: masks.size + piece]
        found = _compare_keys(
            room_a.values, room_a.rows, room_a.starts, other.values, other.rows, other.starts, is_same,
            1 << pieces.bits, labels, limit, known, left, right, found,
        )  # fmt: skip
        if found < 0:
            return found
        earlier[masks.size + piece] = key_mask(piece, pieces)
    return found


@allocating
def _search_two(
    values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
    pieces, room_a, room_b, labels, limit, done, left, right, found,
):  # fmt: skip
    """Search two buckets as planned; return left and right, longer if need be, and the number of pairs."""
    while True:
        if pieces.number > 0:
            after = _join_pieces(
                values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
                pieces, room_a, room_b, labels, limit, done, left, right, found,
            )  # fmt: skip
        else:
            after = _compare_runs(
                values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
                labels, limit, done, left, right, found,
            )  # fmt: skip
        if after >= 0:
            return left, right, after
        left, right = resized(left, 2 * left.size), resized(right, 2 * right.size)


@inner
def _largest_sorted(starts_a, starts_b):
    """Return the size of the largest bucket that is not too large to be sorted by pieces."""
    largest = np.int64(0)
    for i in range(_BUCKETS):
        for size in (starts_a[i + 1] - starts_a[i], starts_b[i + 1] - starts_b[i]):
            if largest < size <= MOST_ROWS:
                largest = size
    return largest


@allocating
def _with_room(hot):
    """Return an array twice as long that begins with these pairs of buckets."""
    bigger = empty((hot.shape[0] * 2, 2), np.int64)
    for i in range(hot.shape[0]):
        bigger[i, 0], bigger[i, 1] = hot[i, 0], hot[i, 1]
    return bigger


@kernel
def join_buckets(a, b, is_self, labels, first_bucket, masks, radius, done, shift, limits):
    """Compare each bucket of a with the buckets of b whose value differs by a mask.

    If a side is joined with itself, each pair of buckets is visited once. Each two buckets are searched in
    the way that takes the fewest comparisons: row by row, or by pieces of the bits outside the block.

    Args:
        a: the one side, by `bucket_rows`.
        b: the other side; the same as a if a is joined with itself.
        is_self: whether a is joined with itself.
        labels: int32[n], of all rows; a pair of rows with equal labels is left out.
        first_bucket: the bucket of a to begin with.
        masks: int64[m], XOR masks of a bucket's value, one for each other value within the block's radius.
        radius: the most bits in which two fingerprints may differ.
        done: (uint64[k] masks, int64[k] radii) of blocks that were searched before: a pair that one of them
            has found is left out.
        limits: `Limits`.
        shift: the place of the block; -1 if the rows agree in other blocks as well, which are no pieces.

    Returns:
        (next bucket, left rows, right rows, int64[h, 2] pairs of buckets with too many comparisons, which are
        left to the caller).
    """
    values_a, rows_a, starts_a = a
    values_b, rows_b, starts_b = b
    left, right = empty(1024, np.int32), empty(1024, np.int32)
    hot = empty((16, 2), np.int64)
    found, hot_count = np.int64(0), 0
    bucket = first_bucket
    limit = np.uint64(radius)
    largest = _largest_sorted(starts_a, starts_b) if shift >= 0 else np.int64(0)
    room_a, room_b = make_room(largest), make_room(largest)
    while bucket < _BUCKETS and found < limits.chunk:
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
            rest = radius - np.int64(popcount(np.uint64(mask)))
            pieces, cost = plan(
                values_a, a_start, a_end, values_b, b_start, b_end, is_same,
                shift, rest, largest, limits.sorting, room_a, room_b,
            )  # fmt: skip
            if cost > limits.hot:
                if hot_count == hot.shape[0]:
                    hot = _with_room(hot)
                hot[hot_count, 0] = bucket
                hot[hot_count, 1] = other
                hot_count += 1
                continue
            left, right, found = _search_two(
                values_a, rows_a, a_start, a_end, values_b, rows_b, b_start, b_end, is_same,
                pieces, room_a, room_b, labels, limit, done, left, right, found,
            )  # fmt: skip
        bucket += 1
    return bucket, left[:found].copy(), right[:found].copy(), hot[:hot_count].copy()


@kernel
def compare_all(a, b, is_self, labels, first, radius, done, chunk):
    """Compare each row of a with each row of b that has another label.

    Both sides are sorted by their labels, so that rows with the row's own label are skipped as a whole, and
    the others are compared in one loop.

    Returns:
        (next position in a, left rows, right rows).
    """
    values_a, rows_a, run_ends_a = a
    values_b, rows_b, run_ends_b = b
    left, right = empty(1024, np.int32), empty(1024, np.int32)
    found = 0
    limit = np.uint64(radius)
    i = first
    while i < rows_a.size and found < chunk:
        label = labels[rows_a[i]]
        j = run_ends_a[i] if is_self else 0
        while j < rows_b.size:
            end = run_ends_b[j]
            if labels[rows_b[j]] == label:
                j = end
                continue
            while end < rows_b.size and labels[rows_b[end]] != label:
                end = run_ends_b[end]
            while True:
                after = _compare_runs(
                    values_a, rows_a, i, i + 1, values_b, rows_b, j, end, False,
                    labels, limit, done, left, right, found,
                )  # fmt: skip
                if after >= 0:
                    found = after
                    break
                left, right = resized(left, 2 * left.size), resized(right, 2 * right.size)
            j = end
        i += 1
    return i, left[:found].copy(), right[:found].copy()
