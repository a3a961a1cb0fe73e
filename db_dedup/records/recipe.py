"""What decides the features, the fingerprint and the sketch of a row."""

from dataclasses import dataclass
from typing import Final, Literal

from db_dedup.records.frames import NO_FRAMES, FrameList

RECIPE_VERSION: Final = 4
"""Incremented by each release in which the same settings give other fingerprints, digests or sketches."""


ComparedBy = Literal["words", "grams"]


@dataclass(frozen=True)
class RecipeColumn:
    """A weighted column: a text that is cut into words, or a value that is one feature as a whole."""

    name: str
    kind: Literal["text", "value"]
    weight: int


@dataclass(frozen=True)
class Recipe:
    """The settings of a watched table that the pure steps need.

    Attributes:
        columns: in their order; two rows are exact duplicates when their columns, one after the other, are
            equal.
        normaliser: name of the normaliser of texts.
        segmenter: name of the segmenter of texts.
        user_words: words that the segmenter keeps whole.
        stop_words: words that are dropped; None for the built-in list.
        term_frequency: how the number of times a word occurs becomes its weight.
        min_features: a row with fewer has no fingerprint.
        sketches: whether rows get sketches.
        short_threshold: the edit similarity from which on two short texts are duplicates; 0 compares them as
            all texts.
        long_grams: whether two long texts in letters are compared by longer grams.
        compared_by: what the measure compares: the words of the fingerprint, or character 3-grams.
        frames: the frozen list that a scan measured for this recipe: what is left out of texts, and which
            3-grams are common.
        names_places: whether the names of places are kept, from which pairs get a flag.
    """

    columns: tuple[RecipeColumn, ...]
    normaliser: str
    segmenter: str
    user_words: tuple[str, ...]
    stop_words: tuple[str, ...] | None
    term_frequency: str
    min_features: int
    sketches: bool
    short_threshold: float
    long_grams: bool
    compared_by: ComparedBy
    frames: FrameList = NO_FRAMES
    names_places: bool = False

    @property
    def has_prefixes(self) -> bool:
        """Whether rows with few 3-grams have a prefix of these in their sketch.

        Only a measure with a bound is used with a `short_threshold`. The recipe does not say more of it.
        """
        return self.sketches and self.short_threshold > 0
