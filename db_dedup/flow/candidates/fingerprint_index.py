"""Step 5 for rows that are added one after another: the fingerprints of a table in memory, indexed by block.

The search is that of the look-up in the database, and faster if many rows have changed. Each row is in four
buckets, one by each of its blocks. To sort a whole table into buckets takes as long as tens of thousands of
searches. So rows that are added later have buckets of their own, which are sorted again at each addition,
until there are many of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import resized
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty
from db_dedup.flow.candidates._bucket_join import bucket_rows, popcount
from db_dedup.flow.candidates.blocks import block_radii, flip_masks
from db_dedup.records.fingerprints import BLOCK_SHIFTS

_LATER_AT_MOST: Final = 20_000

_GONE: Final = -1

Near = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""(positions of the asked fingerprints, ids found, distances in bits), each int64[p] for p hits."""

_IdsAndValues = tuple[NDArray[np.int64], NDArray[np.uint64]]


class FingerprintIndex:
    """Ids and fingerprints of rows; rows can be added and removed."""

    def __init__(self, ids: NDArray[np.int64], values: NDArray[np.uint64]) -> None:
        """Sort rows into buckets.

        Args:
            ids: int64[n], distinct and not negative.
            values: uint64[n], their fingerprints.
        """
        self._base, self._later = _Rows(ids, values), _Rows.none()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._base) + len(self._later)

    def put(self, rows: Mapping[int, int]) -> None:
        """Add rows, or replace their fingerprints.

        Args:
            rows: id -> fingerprint.
        """
        self.remove(rows)
        new = np.fromiter(rows, np.int64, len(rows)), np.fromiter(rows.values(), np.uint64, len(rows))
        later = _joined(self._later.left(), new)
        if later[0].size <= _LATER_AT_MOST:
            self._later = _Rows(*later)
        else:
            self._base, self._later = _Rows(*_joined(self._base.left(), later)), _Rows.none()

    def remove(self, row_ids: Collection[int]) -> None:
        """Remove rows; ids that are not in the index are ignored."""
        gone = np.fromiter(row_ids, np.int64, len(row_ids))
        self._base.remove(gone)
        self._later.remove(gone)

    def find_near(self, asked: NDArray[np.uint64], radius: int) -> Near:
        """Return every row within `radius` bits (0 to 11) of each asked fingerprint; equal ones, too."""
        parts = [rows.find_near(asked, radius) for rows in (self._base, self._later)]
        which, ids, distances = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return which, ids, distances


class _Rows:
    """Rows in buckets by each of their four blocks; rows can be removed, but not added."""

    def __init__(self, ids: NDArray[np.int64], values: NDArray[np.uint64]) -> None:
        self._ids, self._values = ids.copy(), values
        self._count = ids.size
        self._order = np.argsort(ids)
        self._sorted_ids = ids[self._order]
        everyone = np.arange(ids.size, dtype=np.int32)
        self._buckets = tuple(bucket_rows(values, everyone, shift) for shift in BLOCK_SHIFTS)

    @classmethod
    def none(cls) -> _Rows:
        """Return an object without rows."""
        return cls(np.empty(0, np.int64), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return self._count

    def left(self) -> _IdsAndValues:
        """Return (int64[n] ids, uint64[n] fingerprints) of the rows that were not removed."""
        is_there = self._ids != _GONE
        return self._ids[is_there], self._values[is_there]

    def remove(self, gone: NDArray[np.int64]) -> None:
        """Remove these ids; those that are not in the buckets are ignored."""
        places = np.searchsorted(self._sorted_ids, gone)
        is_known = places < self._sorted_ids.size
        is_known[is_known] = self._sorted_ids[places[is_known]] == gone[is_known]
        rows = np.unique(self._order[places[is_known]])
        self._count -= int(np.count_nonzero(self._ids[rows] != _GONE))
        self._ids[rows] = _GONE

    def find_near(self, asked: NDArray[np.uint64], radius: int) -> Near:
        """Return what `FingerprintIndex.find_near` returns, of these rows."""
        radii = block_radii(radius)
        near: Near = _search(
            asked, self._buckets, self._ids, radius, np.array(radii, np.int64), flip_masks(max(radii))
        )
        return near


def _joined(some: _IdsAndValues, others: _IdsAndValues) -> _IdsAndValues:
    return np.concatenate([some[0], others[0]]), np.concatenate([some[1], others[1]])


@kernel
def _search(asked, buckets, ids, radius, radii, masks):
    size, found = 1024, 0
    which, hits, distances = empty(size, np.int64), empty(size, np.int64), empty(size, np.int64)
    for q in range(asked.size):
        for block in range(4):
            if radii[block] < 0:
                continue
            shift = np.uint64(48 - 16 * block)
            values, rows, starts = buckets[block]
            own = np.int64((asked[q] >> shift) & np.uint64(0xFFFF))
            for mask in masks:
                if popcount(np.uint64(mask)) > np.uint64(radii[block]):
                    break  # fewest bits first
                bucket = own ^ mask
                for place in range(starts[bucket], starts[bucket + 1]):
                    difference = values[place] ^ asked[q]
                    distance = popcount(difference)
                    if distance > np.uint64(radius) or _found_before(difference, block, radii):
                        continue
                    if ids[rows[place]] < 0:
                        continue
                    if found == size:
                        size *= 2
                        which, hits = resized(which, size), resized(hits, size)
                        distances = resized(distances, size)
                    which[found], hits[found], distances[found] = q, ids[rows[place]], distance
                    found += 1
    return which[:found].copy(), hits[:found].copy(), distances[:found].copy()


@inner
def _found_before(difference, block, radii):
    """Return whether the search by an earlier block has found this pair."""
    for earlier in range(block):
        bits = (difference >> np.uint64(48 - 16 * earlier)) & np.uint64(0xFFFF)
        if radii[earlier] >= 0 and popcount(bits) <= np.uint64(radii[earlier]):
            return True
    return False
