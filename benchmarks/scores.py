"""Precision, recall and F1 of found pairs."""

from collections.abc import Collection
from dataclasses import dataclass

Pair = tuple[int, int]
"""Two row numbers, the smaller one first."""


@dataclass(frozen=True)
class Score:
    """How many pairs were found, are right, and were to be found."""

    found: int
    right: int
    wanted: int

    @property
    def precision(self) -> float:
        """1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """1 where nothing was to be found."""
        return self.right / self.wanted if self.wanted else 1.0

    @property
    def f1(self) -> float:
        """0 where nothing is right."""
        return 2 * self.right / (self.found + self.wanted) if self.right else 0.0

    def __str__(self) -> str:
        return f"{self.found:>7,} {self.precision:>9.3f} {self.recall:>7.3f} {self.f1:>6.3f}"


HEADER = f"{'found':>7} {'precision':>9} {'recall':>7} {'F1':>6}"
"""Of a table that prints scores."""


def score(found: Collection[Pair], wanted: set[Pair]) -> Score:
    """Compare two sets of pairs; a pair that is not wanted is wrong."""
    return Score(len(found), len(wanted.intersection(found)), len(wanted))
