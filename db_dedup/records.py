"""What travels between the steps: frozen, and free of any database."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Family(StrEnum):
    """What kind of value a column holds; it decides how the value is written as text."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    BINARY = "binary"
    UUID = "uuid"
    OTHER = "other"


@dataclass(frozen=True)
class SourceColumn:
    """A column of the user's table, as inspection found it."""

    name: str
    family: Family
    type_name: str
    max_length: int | None = None
    is_nullable: bool = True
    collation: str | None = None


@dataclass(frozen=True)
class SourceTable:
    """The user's table: its columns in their order and what identifies a row."""

    name: str
    schema: str | None
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...]
    is_view: bool = False

    def column(self, name: str) -> SourceColumn:
        """The column of that name; KeyError where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


@dataclass(frozen=True)
class SourceRow:
    """One row as the flow takes it: keys and values already text, "" for NULL."""

    row_key: str
    order_value: str | None
    values: tuple[str, ...]
    within: str | None


@dataclass(frozen=True)
class DuplicatePair:
    """Two rows that are near-duplicates, the earlier-received first."""

    key_a: str
    key_b: str
    distance: int
    similarity: float | None


@dataclass(frozen=True)
class Match:
    """A stored row that a checked text duplicates."""

    row_key: str
    distance: int
    similarity: float | None
    group_id: str | None


@dataclass(frozen=True)
class GroupSummary:
    """A duplicate group as the view gives it."""

    group_id: str
    size: int
    representative_key: str
    is_loose: bool
    is_abridged: bool


@dataclass(frozen=True)
class ScanReport:
    """What a full scan did."""

    table: str
    rows: int
    fingerprints: int
    too_little_text: int
    copies: int
    pairs: int
    groups: int
    grouped_rows: int
    rows_without_key: int
    seconds: float


@dataclass(frozen=True)
class TableStatus:
    """Where a watched table stands."""

    table: str
    is_scanned: bool
    rows: int
    fingerprints: int
    too_little_text: int
    copies: int
    pairs: int
    groups: int
    last_scan_started: datetime | None
    last_scan_finished: datetime | None
    last_scan_state: str | None
