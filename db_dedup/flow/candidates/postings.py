"""Postings: for each of some hashes the rows that have it, and which rows share enough hashes with sketches.

As in an inverted index (Zobel and Moffat 2006) there is a list of rows for each hash. Lists come from several
parts of the index, so a hash may have several.
"""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import place_between, resized
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.flow.candidates.sketches import Sketches, compiled_least_in_common
from db_dedup.flow.threads import in_threads, split_evenly

_SIDES: Final = ("left", "right")
_SPARSE: Final = 64
"""Rows are numbered by a table of all ids between the least and the highest, if these are at most so many
times the entries."""
_ROWS_WORTH_THREADS: Final = 500_000
_NARROW_BITS: Final = 32
_MORE_THAN_ENOUGH: Final = np.int32(1 << 16)


class Postings(NamedTuple):
    """s lists of rows, with e entries in all.

    Attributes:
        hashes: uint64[s], of each list; in any order.
        ends: int64[s], where each list ends; the next one begins there.
        rows: int[e], ascending in each list; a row may be there twice.
    """

    hashes: NDArray[np.uint64]
    ends: NDArray[np.int64]
    rows: NDArray[np.integer[Any]]

    @classmethod
    def of(cls, hashes: NDArray[np.unsignedinteger[Any]], rows: NDArray[np.integer[Any]]) -> "Postings":
        """Return the lists of e entries in any order: a hash and a row each."""
        order = np.lexsort((rows, hashes))
        hashes, rows = hashes[order], rows[order]
        is_last = np.ones(hashes.size, np.bool_)
        is_last[:-1] = hashes[1:] != hashes[:-1]
        ends = np.flatnonzero(is_last) + 1
        return cls(hashes[ends - 1].astype(np.uint64), ends, rows)

    @property
    def entry_hashes(self) -> NDArray[np.uint64]:
        """uint64[e]: the hash of each entry."""
        return np.repeat(self.hashes, np.diff(self.ends, prepend=0))

    def narrowed(self) -> "Postings":
        """Return the same, the rows as uint32[e] if they have no more than 32 bits."""
        has_wide = bool(self.rows.size) and int(self.rows.max()) >> _NARROW_BITS > 0
        return self if has_wide else self._replace(rows=self.rows.astype(np.uint32))

    def only(self, is_kept: NDArray[np.bool_]) -> "Postings":
        """Return the lists of the kept entries (bool[e]), in the same order; a list may be empty."""
        kept_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_kept)])
        return Postings(self.hashes, kept_before[self.ends], self.rows[is_kept])

    def numbered(self) -> tuple[NDArray[np.int64], "Postings"]:
        """Return (int64[r] the distinct rows, ascending; the same lists of positions among these)."""
        ids, places = _ranked(self.rows)
        return ids, Postings(self.hashes, self.ends, places)


def joined_postings(parts: Sequence[Postings]) -> Postings:
    """Return the lists of all parts, of which there is at least one, in their order."""
    sizes = np.cumsum([0, *(part.rows.size for part in parts)])
    ends = [part.ends + first for part, first in zip(parts, sizes.tolist(), strict=False)]
    return Postings(
        np.concatenate([part.hashes for part in parts]),
        np.concatenate(ends),
        np.concatenate([part.rows for part in parts]),
    )


def _ranked(ids: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return (int64[r] the distinct ids, ascending, int32[e] the position of each id among them)."""
    low = int(ids.min()) if ids.size else 0
    span = int(ids.max()) - low + 1 if ids.size else 0
    if span > _SPARSE * ids.size:
        distinct, places = np.unique(ids, return_inverse=True)
        return distinct.astype(np.int64), places.astype(np.int32)
    is_there = np.zeros(span, np.bool_)
    offsets = ids - ids.dtype.type(low)
    is_there[offsets] = True
    distinct = np.flatnonzero(is_there)
    ranks = np.empty(span, np.int32)  # most of it is never touched
    ranks[distinct] = np.arange(distinct.size, dtype=np.int32)
    return distinct + low, ranks[offsets]


def entries_in(postings: Postings, hashes: NDArray[np.uint32], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return bool[n]: which of n entries, a hash and the id of its row each, are in the lists.

    Args:
        postings: lists of ids of rows.
        hashes: uint32[n].
        ids: int64[n].
    """
    of_lists, begins, ends = _sorted_lists(postings)
    lists = (np.searchsorted(of_lists, hashes.astype(np.uint64), side) for side in _SIDES)
    found: NDArray[np.bool_] = _entries_in(*lists, begins, ends, postings.rows, ids)
    return found


@kernel
def _entries_in(firsts, lasts, begins, ends, rows, ids):
    """Return bool[n]: whether some of the lists first to last - 1 of each entry has its row."""
    are_there = zeros(ids.size, np.bool_)
    for i in range(ids.size):
        for each in range(firsts[i], lasts[i]):
            place = place_between(rows, begins[each], ends[each], ids[i])
            if place < ends[each] and np.int64(rows[place]) == ids[i]:
                are_there[i] = True
    return are_there


def _sorted_lists(postings: Postings) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Return uint64[s] the hashes of the lists, ascending, and where each list begins and ends."""
    order = np.argsort(postings.hashes, kind="stable")
    ends = postings.ends[order]
    return postings.hashes[order], ends - np.diff(postings.ends, prepend=0)[order], ends


def sharing_pairs(
    asked: Sketches,
    postings: Postings,
    counts: NDArray[np.int64],
    first: int = 0,
    end: int | None = None,
    most: int | None = None,
    threads: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of n asked sketches share enough hashes with which of r rows.

    It takes memory for the rows and for the pairs found, but not for every hash that two rows share.

    Args:
        asked: n sketches.
        postings: of all hashes of the asked sketches; rows are int32, 0 to r - 1.
        counts: int64[r], how many hashes each row's sketch has.
        first: only rows from this one on.
        end: only rows before this one; None for all.
        most: stop when there are more pairs than this; None never stops.
        threads: in which many rows are counted.

    Returns:
        (int64[p] positions among the n, int64[p] positions among the r).
    """
    hashes, starts, ends = _sorted_lists(postings)
    lists = [np.searchsorted(hashes, asked.values, side) for side in _SIDES]
    limit = counts.size * asked.counts.size if most is None else most
    rows = postings.rows.astype(np.int32, copy=False)
    end = counts.size if end is None else end
    find = partial(_sharing_pairs, asked.starts, asked.values, *lists, starts, ends, rows, counts)
    bounds = split_evenly(first, end, threads if rows.size >= _ROWS_WORTH_THREADS else 1)
    found = list(in_threads(len(bounds) - 1, find, bounds[:-1], bounds[1:], repeat(limit)))
    return np.concatenate([which for which, _ in found]), np.concatenate([others for _, others in found])


@kernel
def _sharing_pairs(starts, values, firsts, lasts, begins, ends, rows, counts, first_row, end_row, most):
    """Count for each asked sketch the hashes that each row shares with it, and keep the rows with enough."""
    which, others, found = empty(1024, np.int64), empty(1024, np.int64), np.int64(0)
    common, touched = zeros(end_row - first_row, np.int32), empty(end_row - first_row, np.int32)
    for one in range(starts.size - 1):
        count = np.int64(0)
        for i in range(starts[one], starts[one + 1]):
            # A single even hash is enough.
            worth = np.int32(1) if values[i] & np.uint64(1) else _MORE_THAN_ENOUGH
            for each in range(firsts[i], lasts[i]):
                place, end = begins[each], ends[each]
                count = _count_rows(rows, place, end, first_row, end_row, worth, common, touched, count)
        if found + count > which.size:
            size = 2 * (found + count)
            which, others = resized(which, size), resized(others, size)
        size = starts[one + 1] - starts[one]
        found = _take_sharing(one, size, counts, first_row, common, touched, count, which, others, found)
        if found > most:
            break
    return which[:found].copy(), others[:found].copy()


@inner
def _count_rows(rows, place, end, first_row, end_row, worth, common, touched, count):
    """Add to the rows of a list what a hash is worth; return how many rows have been touched then."""
    if first_row > 0:
        place = place_between(rows, place, end, first_row)
    while place < end and rows[place] < end_row:
        row = rows[place] - first_row
        if common[row] == 0:
            touched[count] = row
            count += 1
        common[row] += worth
        place += 1
    return count


@inner
def _take_sharing(one, size, counts, first_row, common, touched, count, which, others, found):
    """Write those of the touched rows that share enough hashes; return how many pairs there are then."""
    for place in range(np.uint64(count)):
        row = touched[place]
        if common[row] >= compiled_least_in_common(min(size, counts[first_row + row])):
            which[found], others[found] = one, first_row + row
            found += 1
        common[row] = 0
    return found
