"""The sets of features that a process has read of a generation of segments, and keeps for later look-ups."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.set_pieces import (
    ROWS_A_PIECE,
    bounds_in,
    numbers_of,
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
_MOST_SLOTS: Final = 1 << 23
"""Enough for ids up to four billion; sets of others are not kept. For larger ids the table of the places of
pieces would take too much memory."""

_BYTES_FOR_A_SLOT: Final = 32
"""Of the budget, so that this table takes at most an eighth of it."""


class SetMemory:
    """Sets of features by the ids of their rows, of one generation at a time.

    Pieces are read only after some thousand sets were asked for and not found, so that a process that checks
    a single record does not read half of the table. Only some pieces are read at a time, so that no look-up
    takes long; more only where it would take longer to read their rows instead. Threads may share it.
    """

    def __init__(self, budget: int = SET_BYTES) -> None:
        """Make an empty one that takes at most about so many bytes; 0 to keep nothing."""
        self._budget, self._lock = budget, Lock()
        self._most_slots = min(_MOST_SLOTS, budget // _BYTES_FOR_A_SLOT)
        self._misses = 0
        self._clear(None)

    def _clear(self, generation: int | None) -> None:
        self._generation = generation
        self._slots = np.empty(0, np.int32)
        self._count = 0
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
            pieces = pieces[self._slots_of(pieces) < 0]
            if not pieces.size:
                return []
            self._misses += pieces.size
            if self._misses < _MISSES_BEFORE or self.is_full:
                return []
            pieces, counts = np.unique(pieces[self._can_keep(pieces)], return_counts=True)
            most_first: list[int] = pieces[np.argsort(-counts, kind="stable")].tolist()
            return most_first[: max(_PIECES_A_LOOKUP, int(np.count_nonzero(counts >= _ROWS_WORTH_A_PIECE)))]

    def _can_keep(self, pieces: NDArray[np.int64]) -> NDArray[np.bool_]:
        are_low: NDArray[np.bool_] = numbers_of(pieces) < self._most_slots
        return are_low

    def _slots_of(self, pieces: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
        """Return int[n]: where the bounds of each piece are; -1 for a piece that is not here."""
        numbers = numbers_of(pieces)
        if not numbers.size or numbers.max() < self._slots.size:
            return self._slots[numbers]
        found, inside = np.full(pieces.size, -1, np.int32), numbers < self._slots.size
        found[inside] = self._slots[numbers[inside]]
        return found

    @property
    def is_full(self) -> bool:
        """Whether the budget is used up."""
        return self.bytes_used >= self._budget

    @property
    def bytes_used(self) -> int:
        """The memory that the sets take, and the tables of their places."""
        return self._used + 8 * (ROWS_A_PIECE + 1) * self._count + self._slots.nbytes

    def add(self, generation: int, pieces: Mapping[int, bytes]) -> None:
        """Keep some pieces of a generation; an empty one has no sets."""
        with self._lock:
            if generation != self._generation:
                return
            given = np.array([*pieces], np.int64)
            missing = given[self._can_keep(given) & (self._slots_of(given) < 0)].tolist()
            new = {piece: bounds_in(pieces[piece]) for piece in missing}
            self._make_room(missing, self._used + sum(len(sets) for _, sets in new.values()))
            for slot, (bounds, sets) in enumerate(new.values(), self._count):
                self._packed[self._used : self._used + len(sets)] = np.frombuffer(sets, np.uint8)
                self._bounds[slot] = bounds + self._used
                self._used += len(sets)
            self._slots[numbers_of(np.array(missing, np.int64))] = self._count + np.arange(len(missing))
            self._count += len(missing)

    def _make_room(self, new: Sequence[int], size: int) -> None:
        """Make room for some more pieces, with which all sets take so many bytes."""
        if size + SLACK_BYTES > self._packed.size:
            # Memory is taken as it is written; where the system has large pages, `empty` asks for these.
            larger = np.empty(int(size * _GROWTH) + SLACK_BYTES, np.uint8)
            larger[: self._used] = self._packed[: self._used]
            self._packed = larger
        count = self._count + len(new)
        if count > len(self._bounds):
            bounds = np.zeros((int(count * _GROWTH), ROWS_A_PIECE + 1), np.int64)
            bounds[: len(self._bounds)] = self._bounds
            self._bounds = bounds
        highest = int(numbers_of(np.array(new, np.int64)).max(initial=-1))
        if highest >= self._slots.size:
            slots = np.full(min(int((highest + 1) * _GROWTH), self._most_slots), -1, np.int32)
            slots[: self._slots.size] = self._slots
            self._slots = slots

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
