"""The single entries of the index of sketches in memory, for a worker that looks up many hashes at a time."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import Entries, sort_entries
from db_dedup.store import segments

MOST_ENTRIES: Final = 2_000_000
"""So many take 24 MB, and three times as much while some are added."""


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

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are here; otherwise they are read from the database."""
        return self._entries is not None

    def load(self, entries: Entries) -> None:
        """Take all entries of a table."""
        self._entries, self._added = sort_entries(entries), []

    def clear(self) -> None:
        """Forget all entries."""
        self._entries, self._added = None, []

    def add(self, sketches: Mapping[int, bytes]) -> None:
        """Add the entries of sketches (id -> sketch) that have been written."""
        if self._entries is None:
            return
        self._added.append(segments.entries_of(list(sketches), list(sketches.values())))
        if self._entries.ids.size + sum(added.ids.size for added in self._added) > MOST_ENTRIES:
            self.clear()

    def find(self, hashes: NDArray[np.uint32], ids: tuple[int, int]) -> Entries:
        """Return the entries that have some hashes.

        Args:
            hashes: uint32[n], ascending and distinct.
            ids: only of the rows from the first to the second id.
        """
        assert self._entries is not None  # noqa: S101 - the caller asks `is_loaded`
        if self._added:
            self._entries, self._added = sort_entries(segments.joined([self._entries, *self._added])), []
        every = self._entries
        begins, ends = (np.searchsorted(every.hashes, hashes, side) for side in ("left", "right"))
        counts = ends - begins
        first = np.repeat(begins - np.cumsum(counts) + counts, counts)
        places = first + np.arange(first.size)
        return Entries(every.hashes[places], every.ids[places]).of_rows(*ids)
