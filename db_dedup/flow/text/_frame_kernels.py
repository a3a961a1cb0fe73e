"""The kernels that read texts as units and look at their grams: see `_frame_grams`."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import allocating, inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import zeros

SPACE, SIGN, DIGIT, LETTER, CHARACTER, ROW_END, GAP = range(7)
"""The kinds of code points. A gap is where a frame was cut out: no gram reaches across."""

LEAST_STRETCH: Final = 6
"""Shorter stretches do not count, because a few characters may be covered, or not be covered, by chance."""

_LONG_STRETCH: Final = 16
_MANY_COVERED: Final = 24
_COVERED_PART: Final = 4
"""A row carries a frame if one stretch has 16, or all together have 24 and a fourth of the row. Less
than that is a set phrase or a date, which many texts have."""

_GRAM_WEIGHT: Final = 20
_WEIGHTS: Final = np.array([0, 2, 4, 5, 4, 0, 0])
_SIZES: Final = np.array([0, 1, 2, 2, 1, 0, 0])
_RING: Final = 16
_LAST: Final = _RING - 1
"""The ring has more places than a gram has units, of which the lightest weigh 2."""
_OLDEST, _UNITS, _WEIGHT, _SIZE = range(4)
_NUMBER: Final = 0x9E3779B97F4A7C15
_BASE: Final = 0xD1342543DE82EF95
_POWERS: Final = np.array([pow(_BASE, n, 1 << 64) for n in range(_RING)], np.uint64)


class _Window(NamedTuple):
    """The latest units of a row. Unit u is at the place u % 16 of each array.

    Attributes:
        values: uint64[16], the rolling hash of the row up to the unit, with the unit.
        weights: int64[16].
        begins: int64[16], where the units begin.
        sizes: int64[16], the size of all units of the row before this one.
        counts: int64[4]: the oldest unit of the latest gram, how many units the row has, the weight of the
            units from the oldest on, and the size of all units.
    """

    values: NDArray[np.uint64]
    weights: NDArray[np.int64]
    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]


@kernel
def list_grams(points, kinds, row_ends, grams):
    """Write down the grams of all rows, and where those of each row end."""
    window = _empty_window()
    used, row, i = 0, 0, np.int64(0)
    while i < points.size:
        kind, after, value = _unit_at(points, kinds, i)
        if kind == ROW_END:
            row_ends[row] = used
            row += 1
        if kind in (ROW_END, GAP):
            window.counts[:] = 0
        elif kind != SPACE:
            gram = _add(window, kind, value, i)
            if gram:
                grams[used] = gram
                used += 1
        i = after


@kernel
def find_covered(points, kinds, table, sizes, own, stretches):
    """Find the stretches that the grams of a table cover; return how many there are.

    Args:
        points: uint32[m], the code points of the rows; a newline ends each.
        kinds: uint8[0x110000].
        table: of `table_of`.
        sizes: int64[r], filled with the size of each row.
        own: int64[r], filled with the size of what is not covered in each row.
        stretches: int64[c, 3], filled with row, start and end of each stretch of the rows that carry a frame.
    """
    window = _empty_window()
    used, row, row_first, i = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    # The latest stretch: where it is (-1 if there is none), the sizes before it and up to its end, and the
    # unit after it.
    begin, end = np.int64(-1), np.int64(-1)
    from_size, to_size, next_unit = np.int64(0), np.int64(0), np.int64(0)
    while i < points.size:
        kind, after, value = _unit_at(points, kinds, i)
        if kind in (ROW_END, GAP):
            used = _close(stretches, used, row, begin, end, to_size - from_size)
            own[row] += _if_long(window.counts[_SIZE] - to_size)
            sizes[row] += window.counts[_SIZE]
            if kind == ROW_END:
                if not _is_frame(stretches[row_first:used, 3], sizes[row]):
                    used = row_first
                row_first = used
                row += 1
            window.counts[:] = 0
            begin, to_size, next_unit = np.int64(-1), np.int64(0), np.int64(0)
        elif kind != SPACE:
            gram = _add(window, kind, value, i)
            if gram and _holds(table, gram):
                oldest = window.counts[_OLDEST]
                if begin < 0 or oldest > next_unit:
                    used = _close(stretches, used, row, begin, end, to_size - from_size)
                    begin, from_size = window.begins[oldest & _LAST], window.sizes[oldest & _LAST]
                    own[row] += _if_long(from_size - to_size)
                end, to_size, next_unit = after, window.counts[_SIZE], window.counts[_UNITS]
        i = after
    return used


@inner
def _is_frame(sizes, row_size):
    """Return whether the covered stretches of a row are a frame."""
    total, longest = 0, 0
    for size in sizes:
        total += size
        longest = max(longest, size)
    return longest >= _LONG_STRETCH or (total >= _MANY_COVERED and total * _COVERED_PART >= row_size)


@kernel
def table_of(grams):
    """Return grams as a hash table with open addressing, in which 0 is a free place."""
    size = 64
    while size < 4 * grams.size:
        size *= 2
    table = zeros(size, np.uint64)
    for gram in grams:
        place = _place_of(gram, size)
        while table[place] != 0:
            place = (place + 1) & (size - 1)
        table[place] = gram
    return table


@inner
def _place_of(gram, size):
    # The lowest bit is set in all grams.
    return np.int64((gram >> np.uint64(1)) & np.uint64(size - 1))


@inner
def _holds(table, gram):
    place = _place_of(gram, table.size)
    while table[place] != 0:
        if table[place] == gram:
            return True
        place = (place + 1) & (table.size - 1)
    return False


@inner
def _unit_at(points, kinds, i):
    """Return (kind, end, hash) of the unit that begins at i, or of what separates units there."""
    kind = kinds[points[i]]
    end = i + 1
    value = np.uint64(points[i])
    if kind in (DIGIT, LETTER):
        while kinds[points[end]] == kind:
            value = mix(value * np.uint64(_BASE) + np.uint64(points[end]))
            end += 1
    if kind == DIGIT:
        value = np.uint64(_NUMBER)
    return kind, end, value


@allocating
def _empty_window():
    return _Window(
        zeros(_RING, np.uint64),
        zeros(_RING, np.int64),
        zeros(_RING, np.int64),
        zeros(_RING, np.int64),
        zeros(4, np.int64),
    )


@inner
def _add(window, kind, value, begin):
    """Add a unit; return the gram that ends with it, or 0 if the row has too few units before it."""
    counts = window.counts
    unit = counts[_UNITS]
    rolling = window.values[(unit - 1) & _LAST] if unit else np.uint64(0)
    rolling = rolling * np.uint64(_BASE) + mix(value + np.uint64(1))
    window.values[unit & _LAST], window.weights[unit & _LAST] = rolling, _WEIGHTS[kind]
    window.begins[unit & _LAST], window.sizes[unit & _LAST] = begin, counts[_SIZE]
    oldest, weight = counts[_OLDEST], counts[_WEIGHT] + _WEIGHTS[kind]
    while weight - window.weights[oldest & _LAST] >= _GRAM_WEIGHT:
        weight -= window.weights[oldest & _LAST]
        oldest += 1
    counts[_OLDEST], counts[_UNITS] = oldest, unit + 1
    counts[_WEIGHT], counts[_SIZE] = weight, counts[_SIZE] + _SIZES[kind]
    gram = np.uint64(0)
    if weight >= _GRAM_WEIGHT:
        before = window.values[(oldest - 1) & _LAST] if oldest else np.uint64(0)
        gram = mix(rolling - before * _POWERS[unit + 1 - oldest])
        gram |= np.uint64(1)  # never 0, which is a free place of the table
    return gram


@inner
def _close(stretches, used, row, begin, end, size):
    """Write down a stretch if there is one that is long enough; return how many there are."""
    if begin < 0 or size < LEAST_STRETCH:
        return used
    stretches[used, 0], stretches[used, 1] = row, begin
    stretches[used, 2], stretches[used, 3] = end, size
    return used + 1


@inner
def _if_long(size):
    """Return the size of a stretch that is long enough, 0 for another one."""
    return size if size >= LEAST_STRETCH else 0
