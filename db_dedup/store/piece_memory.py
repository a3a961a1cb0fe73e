"""The pieces of the index of sketches that a process has read, kept for later look-ups.

They hold entries of one generation, which never change. So whoever finds them here reads, after the entries,
which generation is active, as if they had just been read.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import SLACK_BYTES, PackedParts
from db_dedup.flow.matching.ragged import with_room
from db_dedup.store.segments import Generation

_BYTES_A_PIECE: Final = 8
"""Of the tables that tell where the parts of each piece are, whether it is here or not."""
_BYTES_A_PART: Final = 16
_LARGE: Final = 8 * 2**20
"""Once so much is used there is room for the whole budget: the system gives memory as it is written, and to
grow once more would take the memory twice."""


class PieceMemory:
    """Pieces of one generation at a time, for one thread at a time."""

    def __init__(self, budget: int) -> None:
        """Make an empty one that takes at most about so many bytes; 0 to keep nothing."""
        self._budget = budget
        self._begin(None)

    def _begin(self, generation: Generation | None) -> None:
        self._generation = generation
        count = 0 if generation is None else generation.piece_count
        self._tables_size = _BYTES_A_PIECE * count
        # The system gives memory of zeros as it is used: a search of a few pieces takes little of it.
        count = count if self._tables_size < self._budget else 0
        self._firsts = np.zeros(count, np.int32)  # 0 for a piece that is not here
        self._counts = np.zeros(count, np.int32)
        self._packed, self._used = np.zeros(SLACK_BYTES, np.uint8), 0
        self._begins, self._ends = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self._parts = 1  # the first one is empty

    def have(self, generation: Generation, pieces: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool[n]: which pieces (int64[n]) of a generation are here."""
        if generation != self._generation or not self._firsts.size:
            return np.zeros(pieces.size, np.bool_)
        are_here: NDArray[np.bool_] = self._firsts[pieces] > 0
        return are_here

    def parts_of(self, pieces: NDArray[np.int64]) -> PackedParts:
        """Return all parts of some pieces (int64[n]) that are here."""
        counts = self._counts[pieces]
        places = np.repeat(self._firsts[pieces] - np.cumsum(counts) + counts, counts)
        places += np.arange(places.size)
        return PackedParts(self._packed, self._begins[places], self._ends[places])

    def add(
        self, generation: Generation, pieces: NDArray[np.int64], of: NDArray[np.int64], parts: PackedParts
    ) -> bool:
        """Keep some pieces that are not here, if there is room for all of them; return whether there is.

        Pieces of another generation are forgotten.

        Args:
            generation: whose pieces.
            pieces: int64[n], their numbers, ascending.
            of: int64[p], the number of the piece of each part, one of these.
            parts: p parts; a piece without entries has none.
        """
        if self._budget and generation != self._generation:
            self._begin(generation)
        before, first = self._used, self._parts
        used, end = before + parts.packed.size - SLACK_BYTES, first + of.size
        if used + self._tables_size + _BYTES_A_PART * end > self._budget or not self._firsts.size:
            return False
        self._packed = with_room(self._packed, (used if used < _LARGE else self._budget) + SLACK_BYTES)
        self._packed[before:used] = parts.packed[: used - before]
        self._begins, self._ends = with_room(self._begins, end), with_room(self._ends, end)
        order = np.argsort(of, kind="stable")
        self._begins[first:end] = parts.begins[order] + before
        self._ends[first:end] = parts.ends[order] + before
        self._used, self._parts = used, end
        places, after = (np.searchsorted(of[order], pieces, side) for side in ("left", "right"))
        self._firsts[pieces], self._counts[pieces] = first + places, after - places
        return True
