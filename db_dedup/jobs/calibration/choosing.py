"""The setting with the best F1, and how well choosing one so does on labels that it has not seen."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded.wide_table import MEASURES
from db_dedup.flow.candidates import MAX_RADIUS
from db_dedup.jobs.calibration.counting import counts_by_group, is_found, score
from db_dedup.jobs.calibration.evidence import Evidence
from db_dedup.records import PairSetting

THRESHOLDS: Final = np.arange(1, 101) / 100
FOLDS: Final = 5
_SHUFFLES: Final = 20
_SEED: Final = 7

_Proposal = tuple[int, bool, str]
"""Radius, bands, measure."""


def best_setting(evidence: Evidence, now: PairSetting) -> PairSetting:
    """The setting with the best F1; the one that there is, unless another is better."""
    proposals = _proposals(now)
    counts = _count_folds(evidence, np.zeros(evidence.labels.size, np.int64), 1, proposals)
    best = _best(counts[0], int(evidence.weights[evidence.labels == 1].sum()), proposals)
    return best if score(evidence, best).f1 > score(evidence, now).f1 else now


def cross_validate(evidence: Evidence, groups: int, now: PairSetting) -> NDArray[np.float64]:
    """float64[3, groups]: right, wrong and missed pairs of each group by settings chosen without its fold.

    The groups are dealt into five folds in twenty ways; the counts are the mean of these.
    """
    is_yes = evidence.labels == 1
    proposals = _proposals(now)
    generator = np.random.default_rng(_SEED)
    counts = np.zeros((3, groups))
    for _ in range(_SHUFFLES):
        fold_of = np.empty(groups, np.int64)
        fold_of[generator.permutation(groups)] = np.arange(groups) % FOLDS
        folds = fold_of[evidence.groups]
        by_fold = _count_folds(evidence, folds, FOLDS, proposals)
        duplicates = np.bincount(folds[is_yes], evidence.weights[is_yes], FOLDS)
        for fold in range(FOLDS):
            rest = by_fold.sum(axis=0) - by_fold[fold]
            setting = _best(rest, int(duplicates.sum() - duplicates[fold]), proposals)
            test = evidence.only(folds == fold)
            counts += counts_by_group(test, is_found(test, setting), groups) / _SHUFFLES
    return counts


def _proposals(now: PairSetting) -> list[_Proposal]:
    """The nearer to what there is, the sooner, and then the cheaper to search: of equally good ones the first
    is chosen."""

    def strangeness(proposal: _Proposal) -> tuple[bool, bool, bool, int]:
        radius, bands, measure = proposal
        return measure != now.similarity, bands != now.bands, radius != now.radius, radius

    return sorted(product(range(MAX_RADIUS + 1), (False, True), MEASURES), key=strangeness)


def _count_folds(
    evidence: Evidence, folds: NDArray[np.int64], count: int, proposals: Sequence[_Proposal]
) -> NDArray[np.float64]:
    """float64[folds, proposals, thresholds, 2]: wrong and right pairs that each setting finds in a fold."""
    result = np.zeros((count, len(proposals), THRESHOLDS.size, 2))
    is_judged = evidence.labels >= 0
    size = THRESHOLDS.size + 1
    steps = {m: np.searchsorted(THRESHOLDS, evidence.scores[m], side="right") for m in MEASURES}
    for number, (radius, bands, measure) in enumerate(proposals):
        chosen = is_judged & is_found(evidence, PairSetting(radius, bands, "none", 0.0))
        # Threshold i is passed by the pairs of every step above i.
        place = ((folds[chosen] * size) + steps[measure][chosen]) * 2 + evidence.labels[chosen]
        sums = np.bincount(place, evidence.weights[chosen], count * size * 2).reshape(count, size, 2)
        result[:, number] = sums[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return result


def _best(counts: NDArray[np.float64], duplicates: int, proposals: Sequence[_Proposal]) -> PairSetting:
    """Of a plateau of thresholds the middle, which is steadier than either edge."""
    wrong, right = counts[..., 0], counts[..., 1]
    total = right + wrong + duplicates
    f1 = np.divide(2 * right, total, out=np.zeros_like(total), where=total > 0)
    number, threshold = np.unravel_index(int(np.argmax(f1)), f1.shape)
    equal = np.flatnonzero(f1[number] >= f1[number, threshold] - 1e-12)
    plateau = equal[equal - np.arange(equal.size) == threshold]
    radius, bands, measure = proposals[int(number)]
    return PairSetting(radius, bands, measure, float(THRESHOLDS[plateau[plateau.size // 2]]))
