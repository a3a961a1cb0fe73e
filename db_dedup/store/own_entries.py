"""Which hashes of a changed row's new sketch the segments have for it already, from its former text.

These need no single entries: most hashes stay when a few characters are edited.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.postings import Postings, entries_in
from db_dedup.flow.candidates.segments import hashes_of
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.store.segments import Generation


class NewEntries(NamedTuple):
    """The hashes of a row's sketch that the segments of a generation do not have for this row.

    Attributes:
        row_id: of the stored row.
        generation: its number.
        sketch: these hashes, as a sketch is stored.
    """

    row_id: int
    generation: int
    sketch: bytes


class OwnEntries:
    """Collects from the look-ups of some sketches what the segments have for the rows of these sketches."""

    def __init__(self, sketches: Sketches, row_ids: NDArray[np.int64]) -> None:
        """Begin.

        Args:
            sketches: n sketches.
            row_ids: int64[n], of the stored row of each; -1 for a row that is not stored.
        """
        self._sketches, self._row_ids = sketches, row_ids
        self._owners = np.repeat(row_ids, sketches.counts)
        self._hashes = hashes_of(sketches.values)
        self._are_there = np.zeros(self._owners.size, np.bool_)
        self._generations = set[int]()

    def note(self, packed: Postings, generation: Generation | None) -> None:
        """Take what a look-up of all these sketches, or of a range of row ids, has found in the segments."""
        if generation is not None:
            self._generations.add(generation.number)
            self._are_there |= entries_in(packed, self._hashes, self._owners)

    def new_entries(self) -> list[NewEntries | None]:
        """Return for each sketch what is to be written of it; None where that is all of it."""
        if len(self._generations) != 1:
            return [None] * self._row_ids.size  # each generation has other rows' former hashes
        (generation,) = self._generations
        starts, values = self._sketches.starts.tolist(), self._sketches.values
        found: list[NewEntries | None] = []
        for i, row_id in enumerate(self._row_ids.tolist()):
            own = slice(starts[i], starts[i + 1])
            are_there = self._are_there[own]
            new = NewEntries(row_id, generation, values[own][~are_there].tobytes())
            found.append(new if are_there.any() else None)
        return found
