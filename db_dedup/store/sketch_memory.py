"""What the rows of the fingerprint table tell of their sketches: how many hashes, and the set of features.

The segments tell this of rows that have not changed since. For each of the others its own row is read. A
worker that looks up many rows at a time keeps what it has read: the changed rows become ever more until they
are folded, and each batch finds most of them again.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.feature_sets import SLACK_BYTES, PackedSets

_MOST_BYTES: Final = 32 * 2**20
"""Of what is kept, beside what is read next. Those of a million petitions take some 17 MB before they are
folded, with 142 bytes a set."""
_BYTES_A_ROW: Final = 32
"""Beside its set."""
_GROWTH: Final = 1.5


class StoredSketches(NamedTuple):
    """What the rows of r ids, of which each has a sketch, have beside it.

    Attributes:
        ids: int64[r], ascending.
        counts: int64[r], how many hashes each sketch has.
        sets: of the rows' features.
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    sets: PackedSets

    def of(self, ids: NDArray[np.int64]) -> "StoredSketches":
        """Return those of some ids, which are ascending and are all here."""
        places = np.searchsorted(self.ids, ids)
        sets = self.sets._replace(begins=self.sets.begins[places], ends=self.sets.ends[places])
        return StoredSketches(ids, self.counts[places], sets)

    def having(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool[n]: which of n ids are here."""
        if not self.ids.size:
            return np.zeros(ids.size, np.bool_)
        places = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        are_here: NDArray[np.bool_] = self.ids[places] == ids
        return are_here


def _nothing() -> StoredSketches:
    none = np.empty(0, np.int64)
    return StoredSketches(none, none, PackedSets(np.zeros(SLACK_BYTES, np.uint8), none, none))


class StoredSketchMemory:
    """What a worker has read of rows with a sketch.

    It holds for the version of the answer at which it was read, and for those that the owner makes of it, if
    each row that it writes is forgotten.
    """

    def __init__(self) -> None:
        """Make an empty one."""
        self._rows, self._used = _nothing(), 0

    def clear(self) -> None:
        """Forget all rows."""
        self._rows, self._used = _nothing(), 0

    def forget(self, ids: Collection[int]) -> None:
        """Forget some rows. Their sets are still in memory, but are not found any more."""
        ids_, counts, (packed, begins, ends) = self._rows
        is_kept = ~np.isin(ids_, np.fromiter(ids, np.int64, len(ids)))
        sets = PackedSets(packed, begins[is_kept], ends[is_kept])
        self._rows = StoredSketches(ids_[is_kept], counts[is_kept], sets)

    def trim(self) -> None:
        """Forget all rows if they take too much memory."""
        if self._used + _BYTES_A_ROW * self._rows.ids.size > _MOST_BYTES:
            self.clear()

    def find(self, ids: NDArray[np.int64]) -> StoredSketches:
        """Return what is here of some rows, whose ids are ascending."""
        return self._rows.of(ids[self._rows.having(ids)])

    def add(self, found: StoredSketches) -> None:
        """Keep some rows that are not here."""
        new = found.sets.packed.size - SLACK_BYTES
        packed = self._with_room_for(new)
        packed[self._used : self._used + new] = found.sets.packed[:new]
        begins = np.concatenate([self._rows.sets.begins, found.sets.begins + self._used])
        ends = np.concatenate([self._rows.sets.ends, found.sets.ends + self._used])
        ids = np.concatenate([self._rows.ids, found.ids])
        counts = np.concatenate([self._rows.counts, found.counts])
        order = np.argsort(ids, kind="stable")
        sets = PackedSets(packed, begins[order], ends[order])
        self._rows = StoredSketches(ids[order], counts[order], sets)
        self._used += new

    def _with_room_for(self, size: int) -> NDArray[np.uint8]:
        """Return the array of the sets, with room for so many bytes more."""
        packed, wanted = self._rows.sets.packed, self._used + size + SLACK_BYTES
        if wanted <= packed.size:
            return packed
        larger = np.empty(int(wanted * _GROWTH), np.uint8)
        larger[: self._used] = packed[: self._used]
        return larger
