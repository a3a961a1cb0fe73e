"""The rule, and the presets: rules with a name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from db_dedup.config.fields import Count, Flag, Frozen, Name, Radius, Share
from db_dedup.flow.compare.measures import MEASURES, NO_SIMILARITY
from db_dedup.flow.text.normalise import NORMALISERS
from db_dedup.records.calibration import PairSetting

if TYPE_CHECKING:
    Measure = str
    Normaliser = str
else:  # a Literal of names that are listed elsewhere: the error of another value lists them
    Measure = Literal[(NO_SIMILARITY, *MEASURES)]
    Normaliser = Literal[NORMALISERS]
TermFrequency = Literal["raw", "log", "capped", "set"]
StopWords = Literal["drop", "keep"]


class Rule(Frozen):
    """Which candidates count as duplicates, and what a fingerprint is made of.

    Attributes:
        segmenter: what cuts a text into words.
        normaliser: what brings a text to one spelling.
        sketches: also generate candidates by MinHash bands and passage hashes, not by fingerprints alone.
        frames: compare texts without the frames that many rows share.
        short_threshold: the edit similarity from which on two short texts are duplicates; 0 compares them as
            all texts. Only `char_overlap` uses it.
        long_grams: compare two long texts in letters by longer grams. Only `char_overlap` uses it.
    """

    radius: Radius
    similarity: Measure
    threshold: Share
    term_frequency: TermFrequency
    stop_words: StopWords
    min_features: Count = 3
    sketches: Flag
    frames: Flag = False
    short_threshold: Share = 0.0
    long_grams: Flag = False
    segmenter: Name = "jieba"
    normaliser: Normaliser = "plain"

    @property
    def setting(self) -> PairSetting:
        """The part that decides which pairs are found."""
        return PairSetting(
            self.radius,
            self.sketches,
            self.similarity,
            self.threshold,
            self.short_threshold,
            self.long_grams,
        )


# Chosen on labelled petitions: docs/explanation/presets.md has the table.
_BALANCED: Final = Rule(
    radius=3,
    similarity="char_overlap",
    threshold=0.57,
    term_frequency="raw",
    stop_words="keep",
    sketches=True,
    frames=True,
    short_threshold=0.75,
    long_grams=True,
)
PRESETS: Final[Mapping[str, Rule]] = {
    # The paper's rule (P1): four equal blocks, three bits, and no similarity check.
    "strict": Rule(
        radius=3, similarity="none", threshold=0, term_frequency="raw", stop_words="drop", sketches=False
    ),
    "balanced": _BALANCED,
    # For short posts: who reposted them or is mentioned in them does not count, nor how often a word is said
    # (P2; decision 0064).
    "tweet": _BALANCED.model_copy(update={"normaliser": "tweet", "term_frequency": "set"}),
}
DEFAULT_PRESET: Final = "balanced"
if TYPE_CHECKING:
    PresetName = str
else:
    PresetName = Literal[tuple(PRESETS)]
