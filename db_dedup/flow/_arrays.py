"""Compressed sparse rows, searches and sorts for kernels, and arrays that grow."""

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, scalar


def starts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n + 1]: where the values of each of n rows start, and where those of the last row end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def slices_of(
    starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what selects some rows, in their order, of arrays in compressed sparse rows.

    Args:
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1].
        rows: int64[k].

    Returns:
        (int64[k + 1] the starts of the selected rows, int64[m] the positions of their values).
    """
    counts = starts[rows + 1] - starts[rows]
    new = starts_of(counts)
    return new, np.repeat(starts[rows] - new[:-1], counts) + np.arange(new[-1])


@inner
def resized(array, size):
    """Return a larger array that begins with this one."""
    bigger = np.empty(size, array.dtype)
    for i in range(array.size):
        bigger[i] = array[i]
    return bigger


@inner
def place_in(values, wanted):
    """Return what np.searchsorted(values, wanted) does, for integers; that takes half a second to compile."""
    return place_between(values, np.int64(0), np.int64(values.size), wanted)


@scalar
def place_between(values, first, end, wanted):
    """Return the first place from `first` on whose value is not below the wanted one; `end` if none is."""
    while first < end:
        middle = (first + end) // 2
        if values[middle] < wanted:
            first = middle + 1
        else:
            end = middle
    return first


@inner
def sort_part(values, first, end):
    """Sort values[first:end] in place: Shell's method with Tokuda's gaps, for some hundred values."""
    gap = np.int64(1)
    while gap * 9 // 4 < end - first:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for i in range(first + gap, end):
            value, place = values[i], np.int64(i)
            while place - gap >= first and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap = gap * 4 // 9


@inner
def stable_order(keys):
    """Return what np.argsort(keys, kind="stable") does, by a merge sort that compiles ten times as fast."""
    count = keys.size
    order, other = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            i, j = begin, middle
            for k in range(begin, end):
                if j >= end or (i < middle and keys[order[i]] <= keys[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
