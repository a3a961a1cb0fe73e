"""Counts of the pairs that a setting finds, and confidence intervals of the shares."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.measured_table import LENGTH_EDGES, length_bands
from db_dedup.jobs.review.calibration.evidence import UNLABELLED, Evidence
from db_dedup.records import LengthScore, PairSetting, SettingScore, Share

Z: Final = 1.959963984540054
"""95 % of a normal distribution lies within so many standard deviations."""

_DRAWS: Final = 2_000
_DRAWS_AT_ONCE: Final = 50
"""So many are in memory, each with two numbers of 8 bytes for every group."""
_SEED: Final = 1


def is_found(evidence: Evidence, setting: PairSetting) -> NDArray[np.bool_]:
    """Return bool[p]: the pairs that a setting calls duplicates."""
    return Rule(setting).decide(evidence.measured)


def score(evidence: Evidence, setting: PairSetting) -> SettingScore:
    """Return the score of a setting."""
    found = is_found(evidence, setting)
    right, wrong, missed, unlabelled = (
        int(evidence.weights[chosen].sum())
        for chosen in (
            found & (evidence.labels == 1),
            found & (evidence.labels == 0),
            ~found & (evidence.labels == 1),
            found & (evidence.labels == UNLABELLED),
        )
    )
    return SettingScore(
        setting,
        right,
        wrong,
        missed,
        unlabelled if evidence.is_complete else None,
        wilson(right, right + wrong),
        wilson(right, right + missed),
        f1(right, wrong, missed),
    )


def score_by_length(evidence: Evidence, setting: PairSetting) -> tuple[LengthScore, ...]:
    """Return the score for the pairs of each length band that has a labelled duplicate."""
    starts, ends = (0, *LENGTH_EDGES), (*LENGTH_EDGES, None)
    band_of = length_bands(evidence.lengths)
    scores = (
        LengthScore(start, end, score(evidence.only(band_of == band), setting))
        for band, (start, end) in enumerate(zip(starts, ends, strict=True))
    )
    return tuple(each for each in scores if each.score.right + each.score.missed)


def f1(right: float, wrong: float, missed: float) -> float:
    """Return the harmonic mean of precision and recall."""
    return 2 * right / (2 * right + wrong + missed) if right else 0.0


def wilson(hits: float, of: float) -> Share:
    """Return Wilson's score interval (1927) of a proportion; it also holds for few cases and near 0 and 1."""
    if not of:
        return Share(None, 0.0, 1.0)
    share, z2 = hits / of, Z * Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = Z / (1 + z2 / of) * (share * (1 - share) / of + z2 / (4 * of * of)) ** 0.5
    # At 0 and 1 the exact bounds are 0 and 1; rounding would miss them.
    return Share(share, middle - half if hits else 0.0, middle + half if hits < of else 1.0)


def counts_by_group(evidence: Evidence, found: NDArray[np.bool_], groups: int) -> NDArray[np.float64]:
    """Return float64[3, groups]: right, wrong and missed pairs of each group; groups are numbered from 0."""
    is_yes, is_no = evidence.labels == 1, evidence.labels == 0
    kinds = (found & is_yes, found & is_no, ~found & is_yes)
    return np.stack([np.bincount(evidence.groups[k], evidence.weights[k], groups) for k in kinds])


class F1Shares(NamedTuple):
    """F1 of one or two ways to find pairs.

    Attributes:
        gain: by how much the last F1 exceeds the first on the same draws.
    """

    shares: list[Share]
    gain: Share


def bootstrap(counts: Sequence[NDArray[np.float64]]) -> F1Shares:
    """Return F1 with its 2.5th and 97.5th percentile over draws of whole groups, with replacement.

    Args:
        counts: of one or two ways to find, as `counts_by_group` gives them.
    """
    active = np.any([each.sum(axis=0) > 0 for each in counts], axis=0)
    size = int(active.sum())
    if not size:
        return F1Shares([Share(None, 0.0, 1.0) for _ in counts], Share(None, 0.0, 0.0))
    generator, chances = np.random.default_rng(_SEED), np.full(size, 1 / size)
    of_active = [each[:, active] for each in counts]
    sums: list[list[NDArray[np.float64]]] = [[] for _ in counts]
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        draws = generator.multinomial(size, chances, _DRAWS_AT_ONCE).T
        for each, some in zip(of_active, sums, strict=True):
            some.append(each @ draws)
    drawn = [_f1_of(np.hstack(some)) for some in sums]
    values = [f1(*each.sum(axis=1).tolist()) for each in counts]
    shares = [_with_percentiles(value, each) for value, each in zip(values, drawn, strict=True)]
    return F1Shares(shares, _with_percentiles(values[-1] - values[0], drawn[-1] - drawn[0]))


def _f1_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    right, wrong, missed = counts
    total = 2 * right + wrong + missed
    result: NDArray[np.float64] = np.divide(2 * right, total, out=np.zeros_like(total), where=total > 0)
    return result


def _with_percentiles(value: float, drawn: NDArray[np.float64]) -> Share:
    low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
    return Share(value, low, high)
