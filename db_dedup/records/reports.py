"""What a report says of a watched table: counts, and some of its groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from db_dedup.records.group_history import ChangeCount, GroupChange
from db_dedup.records.health import TableStatus
from db_dedup.records.kinds import Kind

SIMILARITY_BINS = 20
"""The number of bins of equal width from 0 to 1. The last bin contains 1."""


class RepeatCount(NamedTuple):
    """Rows that have something in common, and how many of them repeat an earlier row.

    Attributes:
        label: what they have in common; None for NULL.
    """

    label: str | None
    rows: int
    repeats: int


class PlaceGroup(NamedTuple):
    """A group with pairs that each name a place or organisation which the other does not."""

    group_id: str
    size: int
    pairs: int


@dataclass(frozen=True)
class TableReport:
    """What is stored of a table, in numbers.

    Attributes:
        made_at: now, UTC.
        preset: whose rule the table has; None if it has one of its own.
        rule: the measure and its threshold; None if no texts are compared.
        status: the state of the table.
        distances: distance in bits -> how many pairs have it, exact duplicates not counted.
        similarities: n counts of pairs by similarity, in bins of equal width; empty if none is stored.
        kinds: kind -> how many pairs are of it, exact duplicates counted as copies.
        other_place_pairs: pairs that each name a place which the other does not.
        months: rows by month of the order column, the earliest first; empty if it holds no dates.
        values: column -> rows by its values, the most frequent first.
        loose: ids and sizes of groups that are loose, the largest first.
        other_places: groups with pairs that name different places, most such pairs first.
        changed_ids: how many ids of groups the worker and the last scans changed, the latest first.
        latest_changes: of these ids, the latest first.
    """

    table: str
    made_at: datetime
    preset: str | None
    rule: tuple[str, float] | None
    status: TableStatus
    distances: Mapping[int, int]
    similarities: tuple[int, ...]
    kinds: Mapping[Kind, int]
    other_place_pairs: int
    months: tuple[RepeatCount, ...]
    values: Mapping[str, tuple[RepeatCount, ...]]
    loose: tuple[tuple[str, int], ...]
    other_places: tuple[PlaceGroup, ...]
    changed_ids: tuple[ChangeCount, ...]
    latest_changes: tuple[GroupChange, ...]

    @property
    def repeats(self) -> int:
        """Rows that repeat an earlier one: those in groups, without the representatives."""
        return self.status.grouped_rows - self.status.groups
