"""The groups of the rows of a sheet or a frame, by position."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

COLUMNS: Final = ("duplicate_group", "group_size", "is_representative")


@dataclass(frozen=True)
class RowGroups:
    """The duplicate groups of n rows.

    Attributes:
        representatives: int64[n], the position of the row that represents the group of each row, which is the
            first-received one; a row without duplicates represents itself.
    """

    representatives: NDArray[np.int64]

    @classmethod
    def of_members(cls, count: int, members: Iterable[Sequence[int]]) -> "RowGroups":
        """Return the groups of `count` rows, given the positions in each group, the representative first."""
        representatives = np.arange(count)
        for group in members:
            representatives[list(group)] = group[0]
        return cls(representatives)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64[n]: how many rows the group of each row has, 1 without duplicates."""
        return np.bincount(self.representatives, minlength=self.representatives.size)[self.representatives]

    def columns(self, first_row: int = 0) -> tuple[list[int], list[int], list[bool]]:
        """Return group, size and whether the row represents its group; rows are counted from `first_row`."""
        is_representative = self.representatives == np.arange(self.representatives.size)
        groups = self.representatives + first_row
        return groups.tolist(), self.sizes.tolist(), is_representative.tolist()

    def members(self, first_row: int = 0) -> list[list[int]]:
        """Return the rows of each group of two or more, the representative first; the largest groups first.

        Rows are counted from `first_row`.
        """
        if not self.representatives.size:  # NumPy cuts nothing into one part
            return []
        representatives, numbers = np.unique_inverse(self.representatives)
        by_group = np.split(np.argsort(numbers, stable=True), np.cumsum(np.bincount(numbers))[:-1])
        groups = [
            [first, *(row for row in rows.tolist() if row != first)]
            for first, rows in zip(representatives.tolist(), by_group, strict=True)
            if rows.size > 1
        ]
        groups.sort(key=lambda rows: (-len(rows), rows[0]))
        return [[row + first_row for row in rows] for rows in groups]

    @staticmethod
    def column_names(taken: Iterable[str]) -> tuple[str, ...]:
        """Return the names of these three columns beside others; a name that is taken gets an underscore."""
        others = {name.casefold() for name in taken}
        names = []
        for base in COLUMNS:
            name = base
            while name in others:
                name += "_"
            names.append(name)
        return tuple(names)
