"""The setting with the best F1, and an estimate, by cross-validation, of how well it does on other labels."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.blocks import MAX_RADIUS
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.rule import Rule
from db_dedup.jobs.review.calibration.counting import counts_by_group, is_found, score
from db_dedup.jobs.review.calibration.evidence import Evidence
from db_dedup.records import PairSetting

THRESHOLDS: Final = np.arange(1, 101) / 100
FOLDS: Final = 5
_SHUFFLES: Final = 20
_SEED: Final = 7


class _Option(NamedTuple):
    """A setting without its threshold."""

    radius: int
    sketches: bool
    measure: str


def best_setting(evidence: Evidence, now: PairSetting) -> PairSetting:
    """Return the setting with the best F1; the present one, unless another is better."""
    options = _options(now)
    counts = _count_folds(evidence, np.zeros(evidence.labels.size, np.int64), 1, options, now)
    best = _best(counts[0], int(evidence.weights[evidence.labels == 1].sum()), options, now)
    return best if score(evidence, best).f1 > score(evidence, now).f1 else now


def cross_validate(evidence: Evidence, groups: int, now: PairSetting) -> NDArray[np.float64]:
    """Return float64[3, groups]: right, wrong and missed pairs by settings chosen without the group's fold.

    The groups are divided into five folds at random, twenty times; the counts are the mean of these.
    """
    is_yes = evidence.labels == 1
    options = _options(now)
    generator = np.random.default_rng(_SEED)
    counts = np.zeros((3, groups))
    for _ in range(_SHUFFLES):
        fold_of = np.empty(groups, np.int64)
        fold_of[generator.permutation(groups)] = np.arange(groups) % FOLDS
        folds = fold_of[evidence.groups]
        by_fold = _count_folds(evidence, folds, FOLDS, options, now)
        duplicates = np.bincount(folds[is_yes], evidence.weights[is_yes], FOLDS)
        for fold in range(FOLDS):
            rest = by_fold.sum(axis=0) - by_fold[fold]
            setting = _best(rest, int(duplicates.sum() - duplicates[fold]), options, now)
            test = evidence.only(folds == fold)
            counts += counts_by_group(test, is_found(test, setting), groups) / _SHUFFLES
    return counts


def _options(now: PairSetting) -> list[_Option]:
    """Return all options, those nearest to the present setting first, then the cheapest to search.

    Of equally good ones the first is chosen.
    """

    def difference(option: _Option) -> tuple[bool, bool, bool, int]:
        return (
            option.measure != now.similarity,
            option.sketches != now.sketches,
            option.radius != now.radius,
            option.radius,
        )

    every = product(range(MAX_RADIUS + 1), (False, True), MEASURES)
    return sorted((_Option(*one) for one in every), key=difference)


def _count_folds(
    evidence: Evidence, folds: NDArray[np.int64], count: int, options: Sequence[_Option], now: PairSetting
) -> NDArray[np.float64]:
    """Return float64[folds, options, thresholds, 2]: wrong and right pairs found in each fold."""
    result = np.zeros((count, len(options), THRESHOLDS.size, 2))
    is_judged = evidence.labels >= 0
    size = THRESHOLDS.size + 1
    by_measure = {m: replace(now, similarity=m, threshold=0.0) for m in MEASURES}
    steps = {m: _steps(evidence, setting) for m, setting in by_measure.items()}
    kept = {m: Rule(setting).is_kept(evidence.measured) for m, setting in by_measure.items()}
    for number, (radius, sketches, measure) in enumerate(options):
        rule = Rule(PairSetting(radius, sketches, measure, 0.0))
        are_candidates = rule.is_near(evidence.measured) | rule.shares_hashes(evidence.measured)
        chosen = is_judged & kept[measure] & are_candidates
        # The pairs of every step above i are at or above threshold i.
        place = ((folds[chosen] * size) + steps[measure][chosen]) * 2 + evidence.labels[chosen]
        sums = np.bincount(place, evidence.weights[chosen], count * size * 2).reshape(count, size, 2)
        result[:, number] = sums[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return result


def _steps(evidence: Evidence, setting: PairSetting) -> NDArray[np.int64]:
    """Return int64[p]: how many of the thresholds the similarity reaches, by the measure of the setting.

    Two short texts with few edits reach all thresholds, since they are compared by a threshold of their own,
    which is not varied. Short texts with other numbers reach none.
    """
    pairs, rule = evidence.measured, Rule(setting)
    reached = np.searchsorted(THRESHOLDS, pairs.similarity(setting), side="right")
    reached = np.where(rule.has_few_edits(pairs), THRESHOLDS.size, reached)
    return np.where(rule.has_other_numbers(pairs), 0, reached).astype(np.int64)


def _best(
    counts: NDArray[np.float64], duplicates: int, options: Sequence[_Option], now: PairSetting
) -> PairSetting:
    """Return the best option; of equal thresholds the middle one, which other labels change least."""
    wrong, right = counts[..., 0], counts[..., 1]
    total = right + wrong + duplicates
    f1 = np.divide(2 * right, total, out=np.zeros_like(total), where=total > 0)
    number, threshold = np.unravel_index(int(np.argmax(f1)), f1.shape)
    equal = np.flatnonzero(f1[number] >= f1[number, threshold] - 1e-12)
    plateau = equal[equal - np.arange(equal.size) == threshold]
    radius, sketches, measure = options[int(number)]
    chosen = float(THRESHOLDS[plateau[plateau.size // 2]])
    return replace(now, radius=radius, sketches=sketches, similarity=measure, threshold=chosen)
