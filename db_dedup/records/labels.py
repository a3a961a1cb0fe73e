"""Labels: whether people say that two rows are duplicates."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from db_dedup.records.keys import RowKey


@dataclass(frozen=True)
class PairLabel:
    """A label for two rows, which are given by their keys."""

    key_a: RowKey
    key_b: RowKey
    is_duplicate: bool


@dataclass(frozen=True)
class TextPair:
    """A label for two texts that are in no table."""

    text_a: str
    text_b: str
    is_duplicate: bool


@dataclass(frozen=True)
class RepeatedLabels:
    """Labels that do not count, because the same pair has a later label.

    Attributes:
        count: how many there are.
        opposite: how many of these say the opposite of the last label of their pair.
    """

    count: int = 0
    opposite: int = 0

    @classmethod
    def among(cls, labels: Iterable[tuple[Hashable, bool]]) -> "RepeatedLabels":
        """Count the repeated labels among (pair, whether it is a duplicate), in the order of the labels."""
        given = list(labels)
        last = dict(given)
        return cls(len(given) - len(last), sum(last[pair] is not said for pair, said in given))


NONE_REPEATED: Final = RepeatedLabels()


@dataclass(frozen=True)
class GivenLabel:
    """A label that is kept with the table, and when it was given (UTC)."""

    key_a: str
    key_b: str
    is_duplicate: bool
    decided_at: datetime


@dataclass(frozen=True)
class JudgedTexts:
    """The texts that a label is about.

    Attributes:
        recipe_digest: of the recipe by which `digests` were computed.
        digests: row key -> digest of the row's text.
    """

    recipe_digest: str | None
    digests: Mapping[str, bytes]


@dataclass(frozen=True)
class LabelOutcome:
    """The result of storing or withdrawing some labels.

    Attributes:
        kept: how many labels were stored.
        faults: a sentence for each label that could not be stored.
        changes_answer: whether a pair has become rejected, or is no longer rejected.
        is_queued: True if the worker updates the stored answer; else the next scan does.
        withdrawn: whether the withdrawn label called the rows duplicates; None if there was no label.
        repeated: labels that were left out, because a later one is about the same two rows.
        same_texts: labels that were left out, because a later one is about other rows with the same two
            texts.
        exact_duplicates: how many labels call exact duplicates duplicates. These need no label, and none is
            stored.
    """

    kept: int
    faults: tuple[str, ...]
    changes_answer: bool
    is_queued: bool
    withdrawn: bool | None = None
    repeated: RepeatedLabels = NONE_REPEATED
    same_texts: RepeatedLabels = NONE_REPEATED
    exact_duplicates: int = 0


@dataclass(frozen=True)
class Question:
    """Two rows that are shown to a person, who labels them.

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
