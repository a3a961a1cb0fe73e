"""What people say of pairs of rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from db_dedup.records.keys import RowKey


@dataclass(frozen=True)
class PairLabel:
    """What somebody says of two rows, named by their keys."""

    key_a: RowKey
    key_b: RowKey
    is_duplicate: bool


@dataclass(frozen=True)
class TextPair:
    """What somebody says of two texts that are in no table."""

    text_a: str
    text_b: str
    is_duplicate: bool


@dataclass(frozen=True)
class GivenLabel:
    """A label that is kept with the table, and when it was given (UTC)."""

    key_a: str
    key_b: str
    is_duplicate: bool
    decided_at: datetime


@dataclass(frozen=True)
class JudgedTexts:
    """The texts that somebody judges.

    Attributes:
        recipe_digest: of the recipe by which `digests` were computed.
        digests: row key -> digest of the row's text.
    """

    recipe_digest: str | None
    digests: Mapping[str, bytes]


@dataclass(frozen=True)
class LabelOutcome:
    """What has become of some labels.

    Attributes:
        kept: how many are kept.
        faults: a sentence for each that is not.
        changes_answer: a pair has become rejected, or is so no longer.
        is_queued: the worker makes the stored answer follow; else the next scan does.
        withdrawn: whether the withdrawn answer called the rows duplicates; None where there was none.
    """

    kept: int
    faults: tuple[str, ...]
    changes_answer: bool
    is_queued: bool
    withdrawn: bool | None = None


@dataclass(frozen=True)
class Question:
    """Two rows that somebody should look at.

    Attributes:
        texts_a: its watched columns as they are now, "" for NULL; so is `texts_b`.
        judged: what a label of this pair is about.
        distance: bits.
        similarity: by the rule's measure.
        is_found: the rule calls them duplicates.
        reason: why they are worth a look.
    """

    key_a: str
    key_b: str
    texts_a: tuple[str, ...]
    texts_b: tuple[str, ...]
    judged: JudgedTexts
    distance: int
    similarity: float
    is_found: bool
    reason: str
