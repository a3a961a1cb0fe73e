"""What travels between the steps: frozen, and free of any database."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal


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


class Verdict(StrEnum):
    """What two rows are to each other by the rule."""

    COPIES = "copies"
    DUPLICATE_PAIR = "duplicate_pair"
    NO_PAIR = "no_pair"
    TOO_LITTLE_TEXT = "too_little_text"


@dataclass(frozen=True)
class RuleTest:
    """One test of the rule; `value` and `limit` are None where it is not about a number."""

    name: str
    passed: bool
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class MarkedToken:
    """A token and whether the other row has it; "ignored" are punctuation, blanks and stop words."""

    text: str
    mark: Literal["shared", "differs", "ignored"]


@dataclass(frozen=True)
class ExplainedColumn:
    """One column of two rows.

    Attributes:
        value_a: as it stands in the table, "" for NULL.
        text_a: as it is compared.
        tokens_a: `text_a` as the segmenter cuts it.
        differing_bits: the column's share in the bits that differ; those of all columns add up to the
            distance. None where a row has no fingerprint.
    """

    name: str
    kind: Literal["text", "value"]
    weight: int
    value_a: str
    value_b: str
    text_a: str
    text_b: str
    tokens_a: tuple[MarkedToken, ...]
    tokens_b: tuple[MarkedToken, ...]
    differing_bits: float | None


@dataclass(frozen=True)
class ExplainedRow:
    """One row as it is now, and where it stands in the stored answer.

    Attributes:
        state: whether the row is as it was when it was last fingerprinted; "new" has never been.
        fingerprint: 16 hexadecimal digits; None where there is too little text to judge.
        features: how many different ones the row has.
        within: its values in the `within` columns.
        copy_of: row key of the row that it is a stored copy of.
        group_id: of its stored group.
    """

    row_key: str
    state: Literal["unchanged", "changed", "new"]
    fingerprint: str | None
    features: int
    within: tuple[str, ...]
    copy_of: str | None
    group_id: str | None


@dataclass(frozen=True)
class StoredLink:
    """What the stored answer says of two rows, or of the rows that they are copies of."""

    kind: Literal["pair", "copies"]
    distance: int
    similarity: float | None
    found_at: datetime | None


@dataclass(frozen=True)
class Explanation:
    """Why two rows are a duplicate pair, or why not.

    Attributes:
        distance: bits in which the fingerprints differ; None where a row has none.
        similarities: every measure by its name, whichever the rule asks for.
        proposers: what can bring two rows together; one that passes is enough.
        tests: what a proposed pair must pass, all of it.
        stored: the link in the stored answer, None where there is none.
        agrees: whether the stored answer is what the rule says of the rows as they are now.
        is_abridged: their common group keeps only the pairs that connect it.
    """

    table: str
    verdict: Verdict
    row_a: ExplainedRow
    row_b: ExplainedRow
    columns: tuple[ExplainedColumn, ...]
    distance: int | None
    similarities: dict[str, float]
    proposers: tuple[RuleTest, ...]
    tests: tuple[RuleTest, ...]
    stored: StoredLink | None
    agrees: bool
    in_same_group: bool
    is_abridged: bool


@dataclass(frozen=True)
class ScanReport:
    """What a full scan did.

    Attributes:
        segmented: texts cut into words; a rescan spares those that have not changed and have no candidate.
    """

    table: str
    rows: int
    fingerprints: int
    too_little_text: int
    segmented: int
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
