"""Step 5's second proposer: two rows are candidates when their sketches meet.

A sketch is a set of hashes: the MinHash bands of a row, which are even, and some of its passages, which are
odd. Two sketches meet where they have a band in common, or one in twelve of the passages of the row that has
fewer, at least one: a phrase that two long letters share does not bring them together, a short letter inside
a long one shares all of its own. Each value is an entry of its own in the band table; here the rows' sketches
stand together, in compressed sparse rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._bands import BANDS

SHARE_OF_PASSAGES: Final = 12
"""One in so many must be common."""

_ENTRIES_A_PART = 1 << 22


@dataclass(frozen=True)
class Sketches:
    """The sketches of n rows.

    Attributes:
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1] of the values.
        values: uint64[m], ascending and distinct within a row.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.uint64]

    @classmethod
    def of_bytes(cls, sketches: Sequence[bytes]) -> "Sketches":
        """Sketches as `bytes_of` gave them."""
        starts = np.cumsum([0, *(len(sketch) // 8 for sketch in sketches)]).astype(np.int64)
        return cls(starts, np.frombuffer(b"".join(sketches), np.uint64))

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[n]: how many values each row has."""
        return np.diff(self.starts)

    def of(self, row: int) -> NDArray[np.uint64]:
        """uint64[k]: the values of one row."""
        return self.values[self.starts[row] : self.starts[row + 1]]

    def bytes_of(self, row: int) -> bytes:
        """The values of one row as they are stored."""
        return self.of(row).tobytes()

    def take(self, rows: NDArray[np.int64]) -> "Sketches":
        """The sketches of these rows, in their order."""
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts[rows])])
        return Sketches(starts, _taken(self.starts, self.values, rows, starts))


NO_SKETCHES: Final = Sketches(np.zeros(1, np.int64), np.empty(0, np.uint64))
"""Of no rows."""


def empty_sketches(count: int) -> Sketches:
    """Sketches without a value, of so many rows."""
    return Sketches(np.zeros(count + 1, np.int64), np.empty(0, np.uint64))


def join_sketches(
    bands: NDArray[np.uint64], starts: NDArray[np.int64], passages: NDArray[np.uint64]
) -> Sketches:
    """Each row's bands and passages in one sketch, told apart by their lowest bits.

    Args:
        bands: uint64[n, b].
        starts: int64[n + 1], the rows' slices of the passages.
        passages: uint64[m].
    """
    return Sketches(*_joined(bands, starts, passages))


def concatenate_sketches(parts: Sequence[Sketches]) -> Sketches:
    """Put the rows of several batches one after the other."""
    counts = [np.zeros(1, np.int64), *(part.counts for part in parts)]
    values = [np.empty(0, np.uint64), *(part.values for part in parts)]
    return Sketches(np.cumsum(np.concatenate(counts)), np.concatenate(values))


def entries(
    sketches: Sketches, places: NDArray[np.int64], salts: NDArray[np.uint64] | None = None
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int32]]]:
    """All values of some rows, each with its row, some millions at a time; equal values stand together.

    Args:
        sketches: of all rows.
        places: int64[n], where the sketch of each of the rows stands.
        salts: uint64[n], added to the values: rows with different ones have no value in common.

    Yields:
        (uint64[k] ascending values, int32[k] positions of their rows among the n).
    """
    if salts is None:
        salts = np.zeros(places.size, np.uint64)
    total = int(sketches.counts[places].sum())
    parts = max(1, -(-total // _ENTRIES_A_PART))
    for part in range(parts if total else 0):
        values, rows = _part(sketches.starts, sketches.values, places, salts, part, parts)
        order = np.argsort(values, kind="stable")
        yield values[order], rows[order]


def runs_of_equal(
    values: NDArray[np.uint64], rows: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows that share a value, run by run.

    Args:
        values: uint64[n], ascending.
        rows: int32[n].

    Returns:
        (int32[r] rows, int64[k + 1] where each of the k runs of two or more rows starts).
    """
    is_equal = values[1:] == values[:-1]
    in_run = np.zeros(values.size, np.bool_)
    in_run[1:] |= is_equal
    in_run[:-1] |= is_equal
    kept = values[in_run]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, kept.size), np.bool_), kept[1:] != kept[:-1]]))
    return rows[in_run], np.concatenate([firsts, [kept.size]]).astype(np.int64)


def least_passages(count: Any) -> Any:
    """How many passages two rows must have in common if the smaller of their sketches has so many values.

    Args:
        count: a number, or an array of them.
    """
    return np.maximum(1, (count - BANDS + SHARE_OF_PASSAGES - 1) // SHARE_OF_PASSAGES)


_least_passages = nb.njit(cache=True, nogil=True)(least_passages)


@nb.njit(cache=True, nogil=True)
def meet(starts, values, a, b):  # type: ignore[no-untyped-def]
    """Whether two sketches meet; False where no sketches are kept. For use inside other kernels."""
    if values.size == 0:
        return False
    i, i_end = starts[a], starts[a + 1]
    j, j_end = starts[b], starts[b + 1]
    least = _least_passages(min(i_end - i, j_end - j))
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


def meetings(
    asked: Sketches, values: NDArray[np.uint64], rows: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of some sketches meet those of which rows, of which no more is known than some entries.

    Needs memory for the entries and for what meets, never for every value that two rows have in common.

    Args:
        asked: of n rows.
        values: uint64[e], those of the rows' values that stand in one of the asked sketches.
        rows: int64[e], whose each of them is, of r rows.
        counts: int64[r], how many values each row's sketch has.

    Returns:
        (int64[p] which of the n, int64[p] which of the r).
    """
    order = np.argsort(values, kind="stable")
    values, rows = values[order], rows[order]
    first, last = (np.searchsorted(values, asked.values, side) for side in ("left", "right"))
    found: tuple[NDArray[np.int64], NDArray[np.int64]] = _meetings(
        asked.starts, asked.values, first, last, rows, counts
    )
    return found


@nb.njit(cache=True, nogil=True)
def _meetings(starts, values, first, last, rows, counts):  # type: ignore[no-untyped-def]
    """One asked sketch after another: count what each row has in common with it, then judge."""
    size, found = 1024, 0
    which, others = np.empty(size, np.int64), np.empty(size, np.int64)
    common, has_band = np.zeros(counts.size, np.int64), np.zeros(counts.size, np.bool_)
    touched = np.empty(counts.size, np.int64)
    for one in range(starts.size - 1):
        count = 0
        for i in range(starts[one], starts[one + 1]):
            for place in range(first[i], last[i]):
                row = rows[place]
                if common[row] == 0:
                    touched[count] = row
                    count += 1
                common[row] += 1
                has_band[row] |= values[i] & np.uint64(1) == np.uint64(0)
        for row in np.sort(touched[:count]):
            smaller = min(starts[one + 1] - starts[one], counts[row])
            if has_band[row] or common[row] >= _least_passages(smaller):
                if found == size:
                    size *= 2
                    which, others = _resized(which, size), _resized(others, size)
                which[found], others[found] = one, row
                found += 1
            common[row], has_band[row] = 0, False
    return which[:found].copy(), others[:found].copy()


@nb.njit(cache=True, nogil=True)
def _resized(array, size):  # type: ignore[no-untyped-def]
    bigger = np.empty(size, array.dtype)
    bigger[: array.size] = array
    return bigger


@nb.njit(cache=True, nogil=True)
def _taken(starts, values, rows, new_starts):  # type: ignore[no-untyped-def]
    taken = np.empty(new_starts[-1], np.uint64)
    for i in range(rows.size):
        taken[new_starts[i] : new_starts[i + 1]] = values[starts[rows[i]] : starts[rows[i] + 1]]
    return taken


@nb.njit(cache=True, nogil=True)
def _joined(bands, starts, passages):  # type: ignore[no-untyped-def]
    rows = bands.shape[0]
    new_starts = np.zeros(rows + 1, np.int64)
    values = np.empty(bands.size + passages.size, np.uint64)
    used = 0
    for row in range(rows):
        own_bands = bands[row] & ~np.uint64(1)
        own_passages = passages[starts[row] : starts[row + 1]] | np.uint64(1)
        own = np.sort(np.concatenate((own_bands, own_passages)))
        for i in range(own.size):
            if i == 0 or own[i] != own[i - 1]:
                values[used] = own[i]
                used += 1
        new_starts[row + 1] = used
    return new_starts, values[:used].copy()


@nb.njit(cache=True, nogil=True)
def _part(starts, values, places, salts, part, parts):  # type: ignore[no-untyped-def]
    """The entries whose salted value falls into one of so many equal parts of all 64-bit numbers."""
    count = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            count += _part_of(values[i] + salts[row], parts) == part
    found, rows = np.empty(count, np.uint64), np.empty(count, np.int32)
    used = 0
    for row in range(places.size):
        for i in range(starts[places[row]], starts[places[row] + 1]):
            value = values[i] + salts[row]
            if _part_of(value, parts) == part:
                found[used], rows[used] = value, row
                used += 1
    return found, rows


@nb.njit(cache=True, nogil=True)
def _part_of(value, parts):  # type: ignore[no-untyped-def]
    return np.int64(((value >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32))
