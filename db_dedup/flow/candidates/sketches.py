"""Sketches: the hashes of a row by all hash generators, and which rows share enough hashes.

Even hashes are of generators for which a single common hash is enough, such as MinHash bands. Odd hashes are
of generators that need a share of common hashes, such as passage hashes. Two rows are a candidate pair if
they share an even hash, or one in twelve of the odd hashes of the row that has fewer, and at least one. A
phrase that two long letters share is not enough. A short letter inside a long one shares all of its hashes.
The database has them in an index of two levels (`store/sketches.py`); here the sketches of many rows are
compressed sparse rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import sort_part, spread_order, starts_of
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates.generators import HASH_GENERATORS, RowHashes

_ONE_IN: Final = 12
"""One in this many odd hashes must be common."""
_EVEN_HASHES: Final = sum(generator.most_hashes for generator in HASH_GENERATORS if generator.one_is_enough)
"""The most even hashes of a row; all others are odd."""

ENTRIES_A_PART = 1 << 21


@dataclass(frozen=True)
class Sketches:
    """The sketches of n rows.

    Attributes:
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1] of the values.
        values: uint64[m], ascending and distinct within a row.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.uint64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[n]: how many values each row has."""
        return np.diff(self.starts)

    def of(self, row: int) -> NDArray[np.uint64]:
        """Return uint64[k]: the values of one row."""
        return self.values[self.starts[row] : self.starts[row + 1]]

    def bytes_of(self, row: int) -> bytes:
        """Return the values of one row as bytes, as they are stored."""
        return self.of(row).tobytes()

    def take(self, rows: NDArray[np.int64]) -> "Sketches":
        """Return the sketches of these rows, in their order."""
        starts = starts_of(self.counts[rows])
        return Sketches(starts, _taken(self.starts, self.values, rows, starts))


NO_SKETCHES: Final = Sketches(np.zeros(1, np.int64), np.empty(0, np.uint64))
"""The sketches of no rows."""


def empty_sketches(count: int) -> Sketches:
    """Return empty sketches of `count` rows."""
    return Sketches(np.zeros(count + 1, np.int64), np.empty(0, np.uint64))


def join_hashes(row_count: int, one_is_enough: Sequence[RowHashes], share: Sequence[RowHashes]) -> Sketches:
    """Return the sketches of n rows.

    Args:
        row_count: n.
        one_is_enough: the rows' hashes by each generator for which one common hash is enough.
        share: the rows' hashes by each other generator.
    """
    even, odd = _merged(row_count, one_is_enough), _merged(row_count, share)
    return Sketches(*_joined(even.starts, even.values, odd.starts, odd.values))


def _merged(row_count: int, parts: Sequence[RowHashes]) -> RowHashes:
    """Return the hashes of all parts together, row by row."""
    parts = [part for part in parts if part.values.size] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    counts = [np.zeros(row_count, np.int64), *(np.diff(part.starts) for part in parts)]
    rows = np.concatenate([np.repeat(np.arange(row_count), count) for count in counts])
    values = np.concatenate([np.empty(0, np.uint64), *(part.values for part in parts)])
    starts = starts_of(np.sum(counts, axis=0))
    return RowHashes(starts, values[np.argsort(rows, kind="stable")])


def concatenate_sketches(parts: Sequence[Sketches]) -> Sketches:
    """Put the rows of several batches one after the other."""
    counts = [np.zeros(1, np.int64), *(part.counts for part in parts)]
    values = [np.empty(0, np.uint64), *(part.values for part in parts)]
    return Sketches(np.cumsum(np.concatenate(counts)), np.concatenate(values))


def entries(
    sketches: Sketches, places: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int32]]]:
    """Yield all values of some rows, each with its row, some millions at a time; equal values in one part.

    Args:
        sketches: of all rows.
        places: int64[n], the position of each row's sketch.

    Yields:
        (uint64[k] ascending values, int32[k] positions of their rows among the n).
    """
    parts = -(-count_entries(sketches, places) // ENTRIES_A_PART)
    salts = np.zeros(places.size, np.uint64)
    for part in range(parts):
        yield entries_of_part(sketches, places, salts, part, parts)


def count_entries(sketches: Sketches, places: NDArray[np.int64]) -> int:
    """Return how many values these rows have."""
    return int(sketches.counts[places].sum())


def entries_of_part(
    sketches: Sketches, places: NDArray[np.int64], salts: NDArray[np.uint64], part: int, parts: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return one part of the values of some rows, as `entries` yields it. Several threads can run at once.

    Args:
        sketches: of all rows.
        places: int64[n], the position of each row's sketch.
        salts: uint64[n], added to the values: rows with different ones have no value in common.
        part: the number of the part.
        parts: how many parts there are.
    """
    values, rows = _part(sketches.starts, sketches.values, places, salts, part, parts)
    order, values = spread_order(values)
    return values, rows[order]


def runs_of_equal(
    values: NDArray[np.uint64], rows: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]:
    """Return the rows that share a value, run by run.

    Args:
        values: uint64[n], ascending.
        rows: int32[n].

    Returns:
        (int32[r] rows, int64[k + 1] where each of the k runs of two or more rows starts, uint64[k] the value
        of each run).
    """
    is_equal = values[1:] == values[:-1]
    in_run = np.zeros(values.size, np.bool_)
    in_run[1:] |= is_equal
    in_run[:-1] |= is_equal
    kept = values[in_run]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, kept.size), np.bool_), kept[1:] != kept[:-1]]))
    return rows[in_run], np.concatenate([firsts, [kept.size]]).astype(np.int64), kept[firsts]


def least_in_common(count: Any) -> Any:
    """Return how many odd hashes two rows must share if the smaller of their sketches has `count` hashes.

    Args:
        count: a number, or an array of them.
    """
    return np.maximum(1, (count - _EVEN_HASHES + _ONE_IN - 1) // _ONE_IN)


compiled_least_in_common = inner(least_in_common)
"""`least_in_common` for kernels."""


@inner
def share_enough(starts, values, a, b):
    """Return whether two sketches share enough hashes; False without sketches. For use in other kernels."""
    if values.size == 0:
        return False
    i, i_end = starts[a], starts[a + 1]
    j, j_end = starts[b], starts[b + 1]
    least = compiled_least_in_common(min(i_end - i, j_end - j))
    common = 0
    while i < i_end and j < j_end:
        if values[i] == values[j]:
            common += 1
            if common == least or values[i] & np.uint64(1) == np.uint64(0):
                return True
            i += 1
            j += 1
        elif values[i] < values[j]:
            i += 1
        else:
            j += 1
    return False


def shares_enough(sketches: Sketches, a: int, b: int) -> bool:
    """Return whether the sketches of two rows share enough hashes."""
    return bool(share_enough_each(sketches, np.array([a], np.int32), np.array([b], np.int32))[0])


def share_enough_each(
    sketches: Sketches, left: NDArray[np.int32], right: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return bool[p]: which of p pairs of rows share enough hashes."""
    found: NDArray[np.bool_] = _share_enough_each(sketches.starts, sketches.values, left, right)
    return found


@kernel
def _share_enough_each(starts, values, left, right):
    found = zeros(left.size, np.bool_)
    for i in range(left.size):
        found[i] = share_enough(starts, values, left[i], right[i])
    return found


@kernel
def _taken(starts, values, rows, new_starts):
    taken = empty(new_starts[-1], np.uint64)
    for i in range(rows.size):
        place = starts[rows[i]] - new_starts[i]
        for j in range(new_starts[i], new_starts[i + 1]):
            taken[j] = values[place + j]
    return taken


@kernel
def _joined(even_starts, even, odd_starts, odd):
    rows = even_starts.size - 1
    new_starts = zeros(rows + 1, np.int64)
    values = empty(even.size + odd.size, np.uint64)
    used = 0
    for row in range(rows):
        first = last = used
        for i in range(even_starts[row], even_starts[row + 1]):
            values[last] = even[i] & ~np.uint64(1)
            last += 1
        for i in range(odd_starts[row], odd_starts[row + 1]):
            values[last] = odd[i] | np.uint64(1)
            last += 1
        sort_part(values, first, last)
        for i in range(first, last):
            if i == first or values[i] != values[used - 1]:
                values[used] = values[i]
                used += 1
        new_starts[row + 1] = used
    return new_starts, values[:used].copy()


@kernel
def _part(starts, values, places, salts, part, parts):
    """Return the entries whose salted value is in the given one of `parts` equal ranges of 64-bit numbers."""
    count = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            count += _part_of(values[i] + salts[row], parts) == part
    found, rows = empty(count, np.uint64), empty(count, np.int32)
    used = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            value = values[i] + salts[row]
            if _part_of(value, parts) == part:
                found[used], rows[used] = value, row
                used += 1
    return found, rows


@inner
def _part_of(value, parts):
    return np.int64(((value >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32))
