"""The numbers that the plots of a table show."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReviewSample:
    """Counts of groups, and of a sample of pairs and rows.

    Attributes:
        sizes: size of a group -> how many groups have it; of all groups.
        distances: bits that differ -> how many pairs of the sample have this distance.
        is_every_pair: whether the sample has all pairs.
        months: month as 2026-01 -> (rows of the sample, those of them that repeat an earlier row).
        is_every_row: whether the sample has all rows.
        values: value of the chosen column -> the same two counts.
        is_every_value: whether these are counts of all rows.
        columns: the columns to choose from.
    """

    sizes: Mapping[int, int]
    distances: Mapping[int, int]
    is_every_pair: bool
    months: Mapping[str, tuple[int, int]]
    is_every_row: bool
    values: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    is_every_value: bool = True
    columns: tuple[str, ...] = ()
