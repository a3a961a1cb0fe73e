"""What travels between the steps: frozen, and free of any database."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from db_dedup.records.calibration import Calibration as Calibration
from db_dedup.records.calibration import LengthScore as LengthScore
from db_dedup.records.calibration import PairSetting as PairSetting
from db_dedup.records.calibration import SettingScore as SettingScore
from db_dedup.records.calibration import SettingStep as SettingStep
from db_dedup.records.calibration import Share as Share
from db_dedup.records.health import DeadChange as DeadChange
from db_dedup.records.health import HotBlock as HotBlock
from db_dedup.records.health import PastScan as PastScan
from db_dedup.records.health import TableStatus as TableStatus
from db_dedup.records.keys import Record as Record
from db_dedup.records.keys import RowKey as RowKey
from db_dedup.records.labels import GivenVerdicts as GivenVerdicts
from db_dedup.records.labels import JudgedTexts as JudgedTexts
from db_dedup.records.labels import PairLabel as PairLabel
from db_dedup.records.labels import PairVerdict as PairVerdict
from db_dedup.records.labels import Question as Question

_T = TypeVar("_T")


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
class NearestRow:
    """The row that another one resembles most, by the stored pairs."""

    row_key: str
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
class CheckResult:
    """What a check found of one record.

    Attributes:
        matches: the nearest first.
        too_little_text: nothing could be judged.
    """

    matches: list[Match]
    too_little_text: bool


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
    """A token and whether the other row has it; "ignored" are punctuation, blanks and stop words.

    One that is "left_out" says how many tokens of a long text are missing in its place.
    """

    text: str
    mark: Literal["shared", "differs", "ignored", "left_out"]


@dataclass(frozen=True)
class ExplainedColumn:
    """One column of two rows.

    Attributes:
        value_a: as it stands in the table, "" for NULL.
        text_a: as it is compared.
        tokens_a: `text_a` as the segmenter cuts it; of a long text those near the first differences.
        left_out_a: how many of the tokens are not among `tokens_a`.
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
    left_out_a: int
    left_out_b: int
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
        seconds: of the whole scan, writing included; of a preview, without it.
        largest_group: how many rows the largest group has; 0 where there is no group.
        pairs_gained: pairs and links of copies that were not stored before, or not so; None where nothing was
            written, as in a preview. So are the other two.
        pairs_lost: stored ones that went.
        groups_changed: groups of either answer that the other does not have just so.
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
    largest_group: int
    rows_without_key: int
    seconds: float
    pairs_gained: int | None = None
    pairs_lost: int | None = None
    groups_changed: int | None = None


@dataclass(frozen=True)
class Difference(Generic[_T]):
    """How many of a kind differ, and some of them."""

    count: int
    samples: tuple[_T, ...]


@dataclass(frozen=True)
class AnswerDifferences:
    """What a fresh answer would change in the stored one; groups by their representative's row key.

    Attributes:
        pairs_gained: pairs and links of copies that are not stored.
        pairs_lost: stored ones that would go.
        pairs_changed: stored ones, as they would be: with another distance or similarity.
        groups_gained: groups of the fresh answer none of whose rows is in a stored group.
        groups_lost: stored groups none of whose rows would be in a group.
        groups_merged: groups of the fresh answer with rows of several stored groups, or of one and of none.
        groups_split: stored groups whose rows would be in several groups, or some of them in none.
        groups_changed: groups of either answer that the other does not have just so, all these included.
    """

    pairs_gained: Difference[DuplicatePair]
    pairs_lost: Difference[DuplicatePair]
    pairs_changed: Difference[DuplicatePair]
    groups_gained: Difference[str]
    groups_lost: Difference[str]
    groups_merged: Difference[str]
    groups_split: Difference[str]
    groups_changed: Difference[str]

    @property
    def count(self) -> int:
        """How many pairs and groups differ; 0 where the answers are the same."""
        pairs = self.pairs_gained.count + self.pairs_lost.count + self.pairs_changed.count
        return pairs + self.groups_changed.count


@dataclass(frozen=True)
class ScanCosts:
    """What a scan would cost, about.

    Reading and matching are measured; writing is estimated from the rows that would be written and from what
    each costs on such a database.

    Attributes:
        fingerprints: rows that it would write, or write anew.
        entries: entries of the band table.
        pairs: pairs, copies aside.
        bytes: of the disk of the database that keeps the answer, beside what is stored there.
        writing_seconds: to write all that.
        seconds: of the whole scan.
        locks: what others notice meanwhile, a sentence each.
    """

    fingerprints: int
    entries: int
    pairs: int
    bytes: int
    writing_seconds: float
    seconds: float
    locks: tuple[str, ...]


@dataclass(frozen=True)
class ScanPreview:
    """What a scan would find and do, computed without writing anything.

    Attributes:
        report: what it would find.
        costs: what it would cost.
        matching_seconds: the part of its time that went into the search; the rest was reading and segmenting.
        hottest_blocks: the block values that most rows share, copies aside.
        differences: from the stored answer, None where there is none yet.
        is_new_recipe: the settings ask for other fingerprints than those stored: a scan builds them beside.
    """

    report: ScanReport
    costs: ScanCosts
    matching_seconds: float
    hottest_blocks: tuple[HotBlock, ...]
    differences: AnswerDifferences | None
    is_new_recipe: bool


@dataclass(frozen=True)
class Verification:
    """How the stored answer and what was made in the database differ from what they should be.

    Attributes:
        answer: differences to a fresh full scan.
        rows: rows whose stored fingerprint is not that of their text.
        drift: a sentence for each thing of ours that is not as it was made: view, triggers, tables.
        waiting: changes in the queue, which the worker has not seen yet.
    """

    table: str
    answer: AnswerDifferences
    rows: Difference[str]
    drift: tuple[str, ...]
    waiting: int

    @property
    def is_right(self) -> bool:
        """Nothing differs."""
        return not (self.answer.count or self.rows.count or self.drift)
