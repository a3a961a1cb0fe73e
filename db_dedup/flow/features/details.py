"""What a row carries for comparisons beside its features, in sections.

Some comparisons need more than the set of words or character 3-grams: the characters of a short text in their
order, the long grams of a long text in letters, the places that a text names. Each of these is a section of
numbers, which may be empty. Which sections a row has depends on
the row and the recipe alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import slices_of, starts_of

CHARACTERS: Final = 0
"""The section of the characters of a short text, in their order."""
LONG_GRAMS: Final = 1
"""The section of the long grams of a long text in letters, ascending and distinct."""
PLACES: Final = 2
"""The section of the names of places and organisations, ascending and distinct."""
SECTIONS: Final = 3


@dataclass(frozen=True)
class Details:
    """The details of n rows.

    Attributes:
        starts: int64[3n + 1]; section s of row i owns the slice starts[3i + s]:starts[3i + s + 1].
        values: uint64[m].
    """

    starts: NDArray[np.int64]
    values: NDArray[np.uint64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[3n]: how many values each section of each row has."""
        return np.diff(self.starts)

    def of(self, row: int, section: int) -> NDArray[np.uint64]:
        """Return uint64[k]: one section of one row."""
        place = row * SECTIONS + section
        return self.values[self.starts[place] : self.starts[place + 1]]

    def section(self, section: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return (int64[n + 1] the rows' slices, uint64[k] values): one section of all rows."""
        counts = self.counts
        is_kept = np.arange(counts.size) % SECTIONS == section
        starts = starts_of(counts[section::SECTIONS])
        return starts, self.values[np.repeat(is_kept, counts)]

    def take(self, rows: NDArray[np.int64]) -> "Details":
        """Return the details of these rows, in their order."""
        starts, taken = slices_of(self.starts, sections_of(rows))
        return Details(starts, self.values[taken])


def sections_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[3k]: the numbers of the sections of k rows."""
    return (rows[:, None] * SECTIONS + np.arange(SECTIONS)).reshape(-1)


NO_DETAILS: Final = Details(np.zeros(1, np.int64), np.empty(0, np.uint64))
"""The details of no rows."""


def join_sections(
    row_count: int, sections: Mapping[int, tuple[NDArray[np.int64], NDArray[np.uint64]]]
) -> Details:
    """Return the details of n rows.

    Args:
        row_count: n.
        sections: section -> (int64[n + 1] the rows' slices, uint64[m] values). Others are empty.
    """
    counts = np.zeros((row_count, SECTIONS), np.int64)
    for section, (starts, _) in sections.items():
        counts[:, section] = np.diff(starts)
    joined = starts_of(counts)
    values = np.empty(joined[-1], np.uint64)
    for section, (starts, own) in sections.items():
        size = counts[:, section]
        firsts = joined[section:-1:SECTIONS]
        values[np.repeat(firsts - starts[:-1], size) + np.arange(own.size)] = own
    return Details(joined, values)


def concatenate_details(parts: Sequence[Details]) -> Details:
    """Put the rows of several batches one after the other."""
    counts = [np.zeros(1, np.int64), *(part.counts for part in parts)]
    values = [np.empty(0, np.uint64), *(part.values for part in parts)]
    return Details(np.cumsum(np.concatenate(counts)), np.concatenate(values))
