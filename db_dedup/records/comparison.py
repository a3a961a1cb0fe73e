"""How well methods, and the product's own rules, tell labelled pairs apart."""

from dataclasses import dataclass
from typing import Literal

from db_dedup.records.calibration import PairSetting
from db_dedup.records.labels import NONE_REPEATED, RepeatedLabels

Step = Literal["alone", "cross", "together"]
"""What is varied, from a first combination on: one of segmenter, features and method; two of them; all."""


Part = Literal["segmenter", "features", "method"]


@dataclass(frozen=True, order=True)
class Combination:
    """A segmenter, features and a method by their names; no segmenter for features that need no words."""

    segmenter: str | None
    features: str
    method: str


@dataclass(frozen=True)
class ThresholdScore:
    """What is found at one threshold.

    Attributes:
        right: pairs labelled as duplicates that are found.
        wrong: pairs labelled as none that are found.
        missed: pairs labelled as duplicates that are not found.
        precision: right / (right + wrong); None if nothing is found.
        recall: right / (right + missed).
        f1: harmonic mean of the two; 0 if nothing right is found.
    """

    threshold: float
    right: int
    wrong: int
    missed: int
    precision: float | None
    recall: float
    f1: float


@dataclass(frozen=True)
class Trial:
    """The result of one combination.

    Attributes:
        step: the first step in which the combination occurs.
        best: the score at the threshold with the best F1; of equally good ones that follow each other the
            middle one.
        curve: the score at each threshold, the strictest first.
        is_distance: the thresholds are distances, which pairs must not exceed; else similarities.
        feature_seconds: CPU time to cut the texts, to make features and what the method keeps of each text.
        comparison_seconds: CPU time to compare the pairs.
    """

    combination: Combination
    step: Step
    best: ThresholdScore
    curve: tuple[ThresholdScore, ...]
    is_distance: bool
    feature_seconds: float
    comparison_seconds: float


@dataclass(frozen=True)
class SkippedTrial:
    """A combination that could not run.

    Attributes:
        step: the first step in which the combination occurs.
        part: what could not run.
        reason: why, and what helps.
    """

    combination: Combination
    step: Step
    part: Part
    reason: str


@dataclass(frozen=True)
class RuleTrial:
    """The result of a rule of the product.

    Attributes:
        name: of the preset; None for the settings of the table.
        segmenter: of the rule.
        term_frequency: of the rule.
        setting: what decides which pairs are found.
        score: with the threshold of the setting; without a similarity check, with its radius.
        feature_seconds: CPU time to fingerprint the texts.
        comparison_seconds: CPU time to compare the pairs.
    """

    name: str | None
    segmenter: str
    term_frequency: str
    setting: PairSetting
    score: ThresholdScore
    feature_seconds: float
    comparison_seconds: float


@dataclass(frozen=True)
class NearestSetting:
    """The setting of the product that decides most like the best combination.

    Attributes:
        segmenter: of the rule.
        term_frequency: of the rule.
        setting: what decides which pairs are found.
        score: by the labels, with the threshold of the setting.
        agreeing: pairs on which it decides as the best combination does.
        changes: setting of `dedup.toml` -> value, where it differs from the settings of the table, or from
            the default preset.
    """

    segmenter: str
    term_frequency: str
    setting: PairSetting
    score: ThresholdScore
    agreeing: int
    changes: dict[str, bool | float | str]


@dataclass(frozen=True)
class Comparison:
    """What labelled pairs say of the methods.

    Attributes:
        table: the watched table; None for pairs of texts.
        texts: different rows or texts in the pairs.
        pairs: labelled pairs that were compared.
        duplicates: those of them that are labelled as duplicates.
        not_there: labels left out: a row is not there, has no text, or has changed since it was labelled.
        trials: in the order of the steps.
        skipped: combinations that could not run.
        rules: the settings of the table, if there is one, and the presets.
        best: the combination with the best F1; of equally good ones the first.
        nearest: the setting of the product that is nearest to it; None if it finds nothing.
        first: segmenter, features and method that are used while others are varied.
        repeated: labels that do not count, because the same pair has a later one.
    """

    table: str | None
    texts: int
    pairs: int
    duplicates: int
    not_there: int
    trials: tuple[Trial, ...]
    skipped: tuple[SkippedTrial, ...]
    rules: tuple[RuleTrial, ...]
    best: Trial
    nearest: NearestSetting | None
    first: Combination
    repeated: RepeatedLabels = NONE_REPEATED
