"""The records that the layers hand to each other: immutable, and without any database."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from db_dedup.records.calibration import Calibration as Calibration
from db_dedup.records.calibration import LengthScore as LengthScore
from db_dedup.records.calibration import PairSetting as PairSetting
from db_dedup.records.calibration import SettingScore as SettingScore
from db_dedup.records.calibration import SettingStep as SettingStep
from db_dedup.records.calibration import Share as Share
from db_dedup.records.comparison import Combination as Combination
from db_dedup.records.comparison import Comparison as Comparison
from db_dedup.records.comparison import NearestSetting as NearestSetting
from db_dedup.records.comparison import RuleTrial as RuleTrial
from db_dedup.records.comparison import SkippedTrial as SkippedTrial
from db_dedup.records.comparison import ThresholdScore as ThresholdScore
from db_dedup.records.comparison import Trial as Trial
from db_dedup.records.costs import ScanCosts as ScanCosts
from db_dedup.records.explanations import Decision as Decision
from db_dedup.records.explanations import ExplainedColumn as ExplainedColumn
from db_dedup.records.explanations import ExplainedRow as ExplainedRow
from db_dedup.records.explanations import Explanation as Explanation
from db_dedup.records.explanations import MarkedToken as MarkedToken
from db_dedup.records.explanations import RuleTest as RuleTest
from db_dedup.records.explanations import StoredLink as StoredLink
from db_dedup.records.forms import Form as Form
from db_dedup.records.frames import FrameExample as FrameExample
from db_dedup.records.frames import FrameReport as FrameReport
from db_dedup.records.frames import FrameStatus as FrameStatus
from db_dedup.records.health import DeadChange as DeadChange
from db_dedup.records.health import HotBlock as HotBlock
from db_dedup.records.health import PastScan as PastScan
from db_dedup.records.health import TableStatus as TableStatus
from db_dedup.records.keys import Record as Record
from db_dedup.records.keys import RowKey as RowKey
from db_dedup.records.kinds import Kind as Kind
from db_dedup.records.labels import GivenLabel as GivenLabel
from db_dedup.records.labels import JudgedTexts as JudgedTexts
from db_dedup.records.labels import LabelOutcome as LabelOutcome
from db_dedup.records.labels import PairLabel as PairLabel
from db_dedup.records.labels import Question as Question
from db_dedup.records.labels import RepeatedLabels as RepeatedLabels
from db_dedup.records.labels import TextPair as TextPair
from db_dedup.records.reservations import Reservation as Reservation

_T = TypeVar("_T")


class Family(StrEnum):
    """The kind of values that a column holds. It decides how the values are written as text."""

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


class SourceRow(NamedTuple):
    """One row as the flow takes it: keys and values are texts, "" for NULL."""

    row_key: str
    order_value: str | None
    values: tuple[str, ...]
    within: str | None


@dataclass(frozen=True)
class DuplicatePair:
    """Two rows that are near-duplicates, the earlier-received first.

    Attributes:
        kind: the kind of pair; None if no measure compares texts.
        contained_key: for a contained pair, the key of the row that is part of the other row; else None.
        other_place: whether each row names a place or organisation that the other does not; None if the kind
            is None.
        form: for posts, the form in which one passes on the other, or both pass on another post; None if the
            table's normaliser knows no forms.
    """

    key_a: str
    key_b: str
    distance: int
    similarity: float | None
    kind: Kind | None = None
    contained_key: str | None = None
    other_place: bool | None = None
    form: Form | None = None


@dataclass(frozen=True)
class NearestRow:
    """The row that another one resembles most, by the stored pairs."""

    row_key: str
    distance: int
    similarity: float | None


@dataclass(frozen=True)
class Match:
    """A stored row that a checked text duplicates.

    Attributes:
        kind: as in `DuplicatePair`.
        contained_key: for a contained pair, the key of the row that is part of the other row; None if that is
            the checked text and its row key is not known.
        other_place: as in `DuplicatePair`.
        form: as in `DuplicatePair`.
        is_reserved: True for a record that another client has reserved, and that is not stored yet; its
            `row_key` is "" if it is not known.
    """

    row_key: str
    distance: int
    similarity: float | None
    group_id: str | None
    kind: Kind | None = None
    contained_key: str | None = None
    other_place: bool | None = None
    form: Form | None = None
    is_reserved: bool = False


@dataclass(frozen=True)
class CheckResult:
    """What a check found of one record.

    Attributes:
        matches: the nearest first.
        too_little_text: the record has too little text to judge.
        others: if several records are checked together, the positions of earlier ones that this one
            duplicates.
    """

    matches: list[Match]
    too_little_text: bool
    others: tuple[int, ...] = ()


class CheckedColumns(NamedTuple):
    """Which columns of a record a check reads.

    Attributes:
        table: the name of the user's table.
        values: the watched columns, then those of `within`.
        key: the columns of the row key, in their order.
    """

    table: str
    values: tuple[str, ...]
    key: tuple[str, ...]


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
    """What a full scan did.

    Attributes:
        segmented: how many texts were cut into words. A later scan does not cut texts that have not changed
            and have no candidate.
        seconds: of the whole scan, with the writing; of a preview, without it.
        largest_group: how many rows the largest group has; 0 if there is no group.
        pairs_gained: pairs and links of exact duplicates that were not stored before, or with other values;
            after a change of the recipe, those whose rows were no pair before. None if nothing was written,
            as in a preview.
        pairs_lost: stored pairs and links that are not in the new answer, or with other values; None as
            above.
        groups_changed: groups of the old or new answer that the other answer does not have with the same rows
            and flags; None as above.
        frames: what was left out of texts; None if the settings leave nothing out.
        parts: how `seconds` are divided: "reading" (with the fingerprints), "matching", "writing" and
            "other"; None if that was not measured.
        hot_blocks: the block values that most rows share, the most frequent first.
        handled_changes: how many queued changes are part of what the scan has read.
        engine: the name of the engine that scanned.
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
    frames: FrameReport | None = None
    parts: Mapping[str, float] | None = None
    hot_blocks: tuple[HotBlock, ...] = ()
    handled_changes: int = 0
    engine: str = "embedded"


@dataclass(frozen=True)
class Difference(Generic[_T]):
    """How many items of one kind differ, and some of them."""

    count: int
    samples: tuple[_T, ...]


@dataclass(frozen=True)
class AnswerDifferences:
    """What a fresh answer would change in the stored one; a group is named by its representative's row key.

    Attributes:
        pairs_gained: pairs and links of exact duplicates that are not stored.
        pairs_lost: stored pairs and links that would be removed.
        pairs_changed: pairs that are stored with another distance or similarity, with their new values.
        groups_gained: groups of the fresh answer none of whose rows is in a stored group.
        groups_lost: stored groups none of whose rows would be in a group.
        groups_merged: groups of the fresh answer with rows of several stored groups, or with rows of one
            stored group and rows of none.
        groups_split: stored groups whose rows would be in several groups, or some of them in none.
        groups_changed: groups of one answer that the other does not have with the same rows and flags; the
            four kinds above are among them.
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
        """How many pairs and groups differ; 0 if the answers are the same."""
        pairs = self.pairs_gained.count + self.pairs_lost.count + self.pairs_changed.count
        return pairs + self.groups_changed.count


@dataclass(frozen=True)
class ScanPreview:
    """What a scan would find and do, computed without writing anything.

    Attributes:
        report: what it would find.
        costs: what it would cost.
        matching_seconds: the time of the search for pairs; the rest of the time is reading and segmenting.
        hottest_blocks: the block values that most rows share, without exact duplicates.
        differences: from the stored answer; None if there is none yet.
        is_new_recipe: whether a scan would compute all fingerprints again, because the settings ask for
            others than the stored ones.
        risks: a sentence for each thing that makes wrong pairs likely, or right ones unlikely.
        frame_examples: rows as they are now in which the frames are seen.
    """

    report: ScanReport
    costs: ScanCosts
    matching_seconds: float
    hottest_blocks: tuple[HotBlock, ...]
    differences: AnswerDifferences | None
    is_new_recipe: bool
    risks: tuple[str, ...] = ()
    frame_examples: tuple[FrameExample, ...] = ()


@dataclass(frozen=True)
class Verification:
    """How the stored answer and the objects in the database differ from what they should be.

    Attributes:
        answer: the differences from a fresh full scan.
        rows: keys of rows whose stored fingerprint is not that of their text. Rows with a change in the
            queue, and rows with the same text as such a row, are left out.
        drift: a sentence for each view, trigger or table of db_dedup that is not as db_dedup created it.
        waiting: how many changes are in the queue.
        frames: the frames of the answer, and how far they have drifted. That does not count as a difference.
    """

    table: str
    answer: AnswerDifferences
    rows: Difference[str]
    drift: tuple[str, ...]
    waiting: int
    frames: FrameReport | None = None

    @property
    def is_right(self) -> bool:
        """Whether nothing differs."""
        return not (self.answer.count or self.rows.count or self.drift)
