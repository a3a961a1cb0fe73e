"""Why two rows are a duplicate pair, or why not."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from db_dedup.records.kinds import Kind


class Decision(StrEnum):
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
    """A token of one row, and whether the other row has it.

    Attributes:
        text: the token; for "left_out" a text that says how many tokens of a long text are not shown here.
        mark: punctuation, blanks and stop words are "ignored".
    """

    text: str
    mark: Literal["shared", "differs", "ignored", "left_out"]


@dataclass(frozen=True)
class ExplainedColumn:
    """One column of two rows.

    Attributes:
        value_a: as it is in the table, "" for NULL.
        text_a: as it is compared: normalised, without frames.
        tokens_a: `text_a` as the segmenter cuts it; of a long text those near the first differences.
        left_out_a: how many of the tokens are not among `tokens_a`.
        differing_bits: the column's share in the bits that differ; those of all columns add up to the
            distance. None where a row has no fingerprint.
        frames_a: the parts that were left out as frames, in their order.
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
    frames_a: tuple[str, ...] = ()
    frames_b: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExplainedRow:
    """One row as it is now, and its place in the stored answer.

    Attributes:
        state: whether the row is as it was when it was last fingerprinted; "new" has never been.
        fingerprint: 16 hexadecimal digits; None where there is too little text to judge.
        features: how many different ones the row has.
        within: its values in the `within` columns.
        copy_of: row key of the canonical row, of a stored exact duplicate.
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
    """What the stored answer says of two rows, or of their canonical rows.

    Attributes:
        pair_kind: what kind of pair it is; None if it is not stored.
        contained_key: of a contained pair the one of the two rows that is part of the other.
        other_place: whether each names a place that the other does not; None if it is not stored.
    """

    kind: Literal["pair", "copies"]
    distance: int
    similarity: float | None
    found_at: datetime | None
    pair_kind: Kind | None = None
    contained_key: str | None = None
    other_place: bool | None = None


@dataclass(frozen=True)
class Explanation:
    """Why two rows are a duplicate pair, or why not.

    Attributes:
        distance: bits in which the fingerprints differ; None where a row has none.
        similarities: name of a measure -> similarity, for every measure.
        generators: the candidate generators; one that passes is enough.
        tests: what a proposed pair must pass, all of it.
        stored: the link in the stored answer, None where there is none.
        agrees: whether the stored answer is what the rule says of the rows as they are now.
        is_abridged: their common group keeps only the pairs that connect it.
        kind: what kind of pair they are, by their present texts; None for no pair, or if no measure compares
            texts.
        contained_key: of a contained pair the row that is part of the other.
        other_place: whether each names a place that the other does not; None like the kind.
    """

    table: str
    decision: Decision
    row_a: ExplainedRow
    row_b: ExplainedRow
    columns: tuple[ExplainedColumn, ...]
    distance: int | None
    similarities: dict[str, float]
    generators: tuple[RuleTest, ...]
    tests: tuple[RuleTest, ...]
    stored: StoredLink | None
    agrees: bool
    in_same_group: bool
    is_abridged: bool
    kind: Kind | None = None
    contained_key: str | None = None
    other_place: bool | None = None
