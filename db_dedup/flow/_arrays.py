"""Compressed sparse rows, searches and sorts for kernels, and arrays that grow."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import allocating, inner
from db_dedup.flow._new_arrays import empty

_HALF_BITS: Final = 32


def contiguous(*columns: NDArray[np.int32]) -> Sequence[NDArray[np.int32]]:
    """Return the columns as contiguous arrays: numba compiles a kernel once more for those of a wider array.

    An array that is contiguous already is not copied.
    """
    return [np.ascontiguousarray(column) for column in columns]


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


def spread_order(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return np.argsort(values, kind="stable") and the sorted values, in a fraction of its time for hashes.

    numpy sorts numbers far faster than their positions. So the upper half of each number that is sorted has
    the upper 32 bits in which the values differ, the lower half the position. Where this leaves values out
    of order, those that agree in these bits are sorted once more: few, where values are spread evenly.

    Args:
        values: uint64[n], n below 2**32.
    """
    if not values.size:
        return np.empty(0, np.int64), values
    least = values.min()
    unused = np.uint64(max(0, int(values.max() - least).bit_length() - _HALF_BITS))
    # In place: there are millions.
    keys = values - least
    keys >>= unused
    keys <<= np.uint64(_HALF_BITS)
    keys |= np.arange(values.size, dtype=np.uint64)
    keys.sort()
    keys &= np.uint64((1 << _HALF_BITS) - 1)
    order = keys.view(np.int64)
    ordered = values[order]
    disorder = np.flatnonzero(ordered[1:] < ordered[:-1])
    if disorder.size:
        upper = (ordered - least) >> unused
        keys = np.unique(upper[disorder])
        bounds = np.stack([np.searchsorted(upper, keys, side) for side in ("left", "right")], axis=1).ravel()
        _, places = slices_of(bounds, np.arange(0, bounds.size, 2))
        again = np.argsort(ordered[places], kind="stable")
        order[places], ordered[places] = order[places][again], ordered[places][again]
    return order, ordered


@allocating
def resized(array, size):
    """Return a larger array that begins with this one."""
    bigger = empty(size, array.dtype)
    for i in range(array.size):
        bigger[i] = array[i]
    return bigger


@inner
def place_in(values, wanted):
    """Return what np.searchsorted(values, wanted) does, for integers; that takes half a second to compile."""
    return place_between(values, np.int64(0), np.int64(values.size), wanted)


@inner
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
def bring_forward(values, keys, count, size):
    """Bring the first `size` of some values to the front, in any order: those with the smallest keys.

    This is Hoare's selection (1961). Of two equal keys that of the smaller value is the first.

    Args:
        values: [n], distinct where their keys are equal.
        keys: [n], moved with their values.
        count: how many of the values are looked at.
        size: how many are wanted.
    """
    low, high = np.int64(0), np.int64(count - 1)
    while low < high and 0 < size < count:
        value, key = values[(low + high) // 2], keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < key or (keys[i] == key and values[i] < value):
                i += 1
            while keys[j] > key or (keys[j] == key and values[j] > value):
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if size <= j:
            high = j
        elif size > i:
            low = i
        else:
            return


@allocating
def stable_order(keys):
    """Return what np.argsort(keys, kind="stable") does, by a merge sort that compiles ten times as fast."""
    count = keys.size
    order, other = empty(count, np.int64), empty(count, np.int64)
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
