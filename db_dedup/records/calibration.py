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
    """A proportion with the ends of its 95 % interval; None where there is nothing to divide."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class SettingScore:
    """What a setting finds.

    Attributes:
        right: labelled duplicates that it finds.
        wrong: pairs labelled as none that it finds.
        missed: labelled duplicates that it does not find.
        unlabelled: pairs that it finds and nobody has judged; None where there are too many to count.
        precision: of the labelled pairs that it finds; Wilson's interval.
        recall: of the labelled duplicates; Wilson's interval.
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
    """A setting's score on pairs whose shorter text has so many characters; `to` None: and more."""

    start: int
    to: int | None
    score: SettingScore


@dataclass(frozen=True)
class SettingStep:
    """What changes from one setting to another.

    Attributes:
        words: the change and what it does, as a sentence.
        added: pairs that only the second finds.
        added_wrong: about so many of them are wrong, by the labelled among them; None where none is labelled.
        dropped: pairs that only the first finds.
        dropped_right: about so many of them are duplicates.
    """

    after: PairSetting
    words: str
    added: int
    added_wrong: Share
    dropped: int
    dropped_right: Share


@dataclass(frozen=True)
class Calibration:
    """What labelled pairs say of the settings of a table.

    Attributes:
        labelled: pairs with a label, of rows that are there.
        duplicates: those of them that are labelled as duplicates.
        not_there: labels that name a row which is not there.
        groups: the connected components of the labelled pairs, which are drawn whole.
        unlabelled_are_wrong: pairs without a label were counted as wrong.
        now: the stored setting, which is also what the steps start from.
        now_f1: with a bootstrap interval over groups; None where there are fewer than ten of them, as are the
            other two of this kind.
        proposed: the setting with the best F1 on all labels.
        cross_validated_f1: of choosing a setting, in five folds over groups; bootstrap over groups.
        gain: by how much that exceeds the F1 of the setting now; bootstrap over groups, paired.
        is_better: the interval of the gain is above 0.
        by_radius: radius 0 to 11, all else as now; without sketches and with them.
        by_threshold: for each measure, candidate generators as now.
        by_length: the setting now, then the proposed one.
        grid: every radius, with and without sketches, every measure, thresholds in steps of 0.05.
        repeated: labels that do not count, because the same pair has a later one.
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
