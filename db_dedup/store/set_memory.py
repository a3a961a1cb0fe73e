"""The sets of features that a process has read of a generation of segments, and keeps for later look-ups."""

from collections.abc import Mapping
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.set_pieces import (
    ROWS_A_PIECE,
    bounds_in,
    places_in_piece,
    set_pieces_of,
)
from db_dedup.flow.compare.feature_sets import SLACK_BYTES, PackedSets

SET_BYTES: Final = 256 * 2**20
"""Of the sets that are kept: those of some three million rows of 110 features."""

_PIECES_A_LOOKUP: Final = 256
_ROWS_WORTH_A_PIECE: Final = 16
"""To read this many rows takes longer than to read their piece."""
_MISSES_BEFORE: Final = 5_000
_GROWTH: Final = 1.5


class SetMemory:
    """Sets of features by the ids of their rows, of one generation at a time.

    Pieces are read only after some thousand sets were asked for and not found, so that a process that checks
    a single record does not read half of the table. Only some pieces are read at a time, so that no look-up
    takes long; more only where it would take longer to read their rows instead. Threads may share it.
    """

    def __init__(self, budget: int = SET_BYTES) -> None:
        """Make an empty one that takes at most about so many bytes; 0 to keep nothing."""
        self._budget, self._lock = budget, Lock()
        self._misses = 0
        self._clear(None)

    def _clear(self, generation: int | None) -> None:
        self._generation = generation
        self._pieces = np.empty(0, np.int64)
        self._slots = np.empty(0, np.int64)
        self._packed = np.zeros(SLACK_BYTES, np.uint8)
        self._used = 0
        self._bounds = np.zeros((0, ROWS_A_PIECE + 1), np.int64)

    def wanted(self, generation: int, ids: NDArray[np.int64]) -> list[int]:
        """Return the numbers of the pieces to read for some rows, those with the most of the rows first.

        Args:
            generation: whose pieces; those of another one are forgotten.
            ids: int64[n], of the rows, ascending.
        """
        with self._lock:
            if generation != self._generation:
                self._clear(generation)
            pieces = set_pieces_of(ids)
            pieces, counts = np.unique(pieces[self._slots_of(pieces) < 0], return_counts=True)
            self._misses += int(counts.sum())
            if self._misses < _MISSES_BEFORE or self.is_full:
                return []
            most_first: list[int] = pieces[np.argsort(-counts, kind="stable")].tolist()
            return most_first[: max(_PIECES_A_LOOKUP, int(np.count_nonzero(counts >= _ROWS_WORTH_A_PIECE)))]

    def _slots_of(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: where the bounds of each piece are; -1 for a piece that is not here."""
        if not self._pieces.size:
            return np.full(pieces.size, -1, np.int64)
        places = np.minimum(np.searchsorted(self._pieces, pieces), self._pieces.size - 1)
        return np.where(self._pieces[places] == pieces, self._slots[places], -1)

    @property
    def is_full(self) -> bool:
        """Whether the budget is used up."""
        return self.bytes_used >= self._budget

    @property
    def bytes_used(self) -> int:
        """The memory that the sets take."""
        return self._used + 8 * (ROWS_A_PIECE + 1) * self._pieces.size

    def add(self, generation: int, pieces: Mapping[int, bytes]) -> None:
        """Keep some pieces of a generation; an empty one has no sets."""
        with self._lock:
            if generation != self._generation:
                return
            new = {p: bounds_in(packed) for p, packed in pieces.items() if p not in self._pieces}
            count = self._pieces.size
            self._make_room(count + len(new), self._used + sum(len(sets) for _, sets in new.values()))
            for slot, (bounds, sets) in enumerate(new.values(), count):
                self._packed[self._used : self._used + len(sets)] = np.frombuffer(sets, np.uint8)
                self._bounds[slot] = bounds + self._used
                self._used += len(sets)
            both = np.concatenate([self._pieces, np.array(list(new), np.int64)])
            slots = np.concatenate([self._slots, np.arange(count, count + len(new))])
            order = np.argsort(both)
            self._pieces, self._slots = both[order], slots[order]

    def _make_room(self, pieces: int, size: int) -> None:
        if size + SLACK_BYTES > self._packed.size:
            # Memory is taken as it is written; where the system has large pages, `empty` asks for these.
            larger = np.empty(int(size * _GROWTH) + SLACK_BYTES, np.uint8)
            larger[: self._used] = self._packed[: self._used]
            self._packed = larger
        if pieces > len(self._bounds):
            bounds = np.zeros((int(pieces * _GROWTH), ROWS_A_PIECE + 1), np.int64)
            bounds[: len(self._bounds)] = self._bounds
            self._bounds = bounds

    def sets_of(self, generation: int, ids: NDArray[np.int64]) -> PackedSets:
        """Return the sets of some rows; a row whose set is not here has none.

        Args:
            generation: whose rows.
            ids: int64[n], of the rows, ascending.
        """
        begins, ends = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.int64)
        with self._lock:
            if generation == self._generation:
                slots = self._slots_of(set_pieces_of(ids))
                known, places = np.flatnonzero(slots >= 0), places_in_piece(ids)
                begins[known] = self._bounds[slots[known], places[known]]
                ends[known] = self._bounds[slots[known], places[known] + 1]
            # What is added later is behind the sets of this array, or in another array.
            return PackedSets(self._packed, begins, ends)
