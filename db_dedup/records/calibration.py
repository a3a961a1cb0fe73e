"""How well settings do on labelled pairs."""

from dataclasses import dataclass

from db_dedup.records.kinds import ExcludedKind
from db_dedup.records.labels import NONE_REPEATED, RepeatedLabels


@dataclass(frozen=True)
class PairSetting:
    """The part of a rule that decides which pairs are found; the rest decides how texts are read."""

    radius: int
    sketches: bool
    similarity: str
    threshold: float
    short_threshold: float = 0.0
    long_grams: bool = False
    exclude_kinds: tuple[ExcludedKind, ...] = ()


@dataclass(frozen=True)
class Share:
    """A proportion with the ends of its 95 % interval; its value is None if the denominator is 0."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class SettingScore:
    """What a setting finds.

    Attributes:
        right: how many labelled duplicates it finds.
        wrong: how many pairs it finds that are labelled as no duplicates.
        missed: how many labelled duplicates it does not find.
        unlabelled: how many pairs without a label it finds; None if there are too many to count.
        precision: the share of duplicates among the labelled pairs that it finds, with Wilson's interval.
        recall: the share of the labelled duplicates that it finds, with Wilson's interval.
    """

    setting: PairSetting
    right: int
    wrong: int
    missed: int
    unlabelled: int | None
    precision: Share
    recall: Share
    f1: float


@dataclass(frozen=True)
class LengthScore:
    """A setting's score on pairs whose shorter text has `start` to `to` characters; None: no upper limit."""

    start: int
    to: int | None
    score: SettingScore


@dataclass(frozen=True)
class SettingStep:
    """What changes from one setting to another.

    Attributes:
        words: the change and what it does, as a sentence.
        added: how many pairs only the second setting finds.
        added_wrong: about how many of these are wrong, estimated from the labelled ones; its value is None if
            none is labelled.
        dropped: how many pairs only the first setting finds.
        dropped_right: about how many of these are duplicates, estimated in the same way.
    """

    after: PairSetting
    words: str
    added: int
    added_wrong: Share
    dropped: int
    dropped_right: Share


@dataclass(frozen=True)
class Calibration:
    """How the settings of a table score on labelled pairs.

    Attributes:
        labelled: how many labelled pairs of existing rows there are.
        duplicates: how many of these are labelled as duplicates.
        not_there: how many labels name a row that does not exist.
        groups: how many connected components the labelled pairs have. Folds and bootstrap samples take whole
            groups.
        unlabelled_are_wrong: whether pairs without a label were counted as wrong.
        now: the score of the stored setting, from which the steps start.
        now_f1: its F1 with a bootstrap interval over groups; the value is None if there are fewer than ten
            groups.
        proposed: the score of the setting with the best F1 on all labels.
        cross_validated_f1: the F1 of settings that were chosen on four fifths of the groups and scored on the
            rest, in five folds; interval and None as for `now_f1`.
        gain: by how much `cross_validated_f1` exceeds `now_f1`, with a paired bootstrap interval; None as for
            `now_f1`.
        is_better: whether the interval of the gain is above 0.
        steps: the changes from the stored setting to others.
        by_radius: the scores of radius 0 to 11 without and with sketches, all else as stored.
        by_threshold: the scores of each measure and threshold, with the stored candidate generators.
        by_length: the scores by the length of texts, of the stored and of the proposed setting.
        grid: the scores of every radius, with and without sketches, with every measure, and with thresholds
            in steps of 0.05.
        repeated: labels that do not count, because the same pair has a later label.
    """

    table: str
    labelled: int
    duplicates: int
    not_there: int
    groups: int
    unlabelled_are_wrong: bool
    now: SettingScore
    now_f1: Share
    proposed: SettingScore
    cross_validated_f1: Share
    gain: Share
    is_better: bool
    steps: tuple[SettingStep, ...]
    by_radius: tuple[SettingScore, ...]
    by_threshold: tuple[SettingScore, ...]
    by_length: tuple[tuple[LengthScore, ...], tuple[LengthScore, ...]]
    grid: tuple[SettingScore, ...]
    repeated: RepeatedLabels = NONE_REPEATED
