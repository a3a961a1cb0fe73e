"""The single entries of the index of sketches in memory, for a worker that looks up many hashes at a time."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import Entries, merged_entries, sort_entries
from db_dedup.store import segments
from db_dedup.store.sketch_memory import StoredSketchMemory

MOST_ENTRIES: Final = 6_000_000
"""So many take 72 MB, twice as much while some are added, and three times as much while all are read. A table
of a million petitions is folded before it has more."""


class SingleMemory:
    """The single entries of a table, by hashes of 32 bits as in the segments.

    They are complete for the version of the answer at which they were read, and for the versions that their
    owner makes of it, if each sketch that it writes is added. Like the segments they may have more: entries
    of rows that have changed again, and those that have been folded since.
    """

    def __init__(self) -> None:
        """Make one that is not loaded."""
        self._entries: Entries | None = None
        self._added: list[Entries] = []
        self._are_too_many = False
        self._rows = StoredSketchMemory()

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are here; otherwise they are read from the database."""
        return self._entries is not None

    @property
    def is_wanted(self) -> bool:
        """Whether the entries are not here, and are not known to be too many."""
        return not self.is_loaded and not self._are_too_many

    @property
    def rows(self) -> StoredSketchMemory | None:
        """What was read of the changed rows themselves; None while the entries are not here."""
        return self._rows if self.is_loaded else None

    def load(self, entries: Entries) -> None:
        """Take all entries of a table."""
        self._entries, self._added = sort_entries(entries), []

    def refuse(self) -> None:
        """Forget all entries, which are too many; they are not wanted before the next `clear`."""
        self.clear()
        self._are_too_many = True

    def clear(self) -> None:
        """Forget all entries."""
        self._entries, self._added, self._are_too_many = None, [], False
        self._rows.clear()

    def add(self, sketches: Mapping[int, bytes]) -> None:
        """Add the entries of sketches (id -> sketch) that have been written."""
        if self._entries is None:
            return
        self._rows.forget(sketches)
        self._added.append(segments.entries_of(list(sketches), list(sketches.values())))
        if self._entries.ids.size + sum(added.ids.size for added in self._added) > MOST_ENTRIES:
            self.refuse()

    def find(self, hashes: NDArray[np.uint32], ids: tuple[int, int]) -> Entries:
        """Return the entries that have some hashes.

        Args:
            hashes: uint32[n], ascending and distinct.
            ids: only of the rows from the first to the second id.
        """
        assert self._entries is not None  # noqa: S101 - the caller asks `is_loaded`
        if self._added:
            added = sort_entries(segments.joined(self._added))
            self._entries, self._added = merged_entries(self._entries, added), []
        every = self._entries
        begins, ends = (np.searchsorted(every.hashes, hashes, side) for side in ("left", "right"))
        counts = ends - begins
        first = np.repeat(begins - np.cumsum(counts) + counts, counts)
        places = first + np.arange(first.size)
        return Entries(every.hashes[places], every.ids[places]).of_rows(*ids)
