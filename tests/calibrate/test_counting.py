"""Counts, intervals and choices on evidence made by hand."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.compare.rule import FAR, MeasuredPairs
from db_dedup.jobs.review.calibration.choosing import THRESHOLDS, best_setting, cross_validate
from db_dedup.jobs.review.calibration.counting import (
    bootstrap,
    counts_by_group,
    is_found,
    score,
    score_by_length,
    wilson,
)
from db_dedup.jobs.review.calibration.evidence import UNLABELLED, Evidence
from db_dedup.jobs.review.calibration.steps import neighbours, step
from db_dedup.records import PairSetting
from db_dedup.records.kinds import EDITED, PARTIAL

NOW = PairSetting(3, sketches=False, similarity="word_jaccard", threshold=0.5)


def evidence(*pairs: tuple[int, int, bool, float], is_complete: bool = True) -> Evidence:
    """Pairs of (label, distance, shares a band, score), each in a group of its own."""
    labels, distances, bands, scores = zip(*pairs, strict=True)
    return Evidence(
        np.array(labels, np.int8),
        np.ones(len(pairs), np.int64),
        np.arange(len(pairs)),
        MeasuredPairs(
            np.array(distances, np.int16),
            np.array(bands, np.bool_),
            {name: np.array(scores, np.float64) for name in MEASURES},
            np.full(len(pairs), np.nan),
        ),
        np.full(len(pairs), 120, np.int64),
        is_complete,
    )


def reference_wilson(hits: int, of: int) -> tuple[float, float]:
    """The proportions that a test of the normal approximation with p's own variance just does not reject."""
    z, share = norm.ppf(0.975), hits / of

    def excess(p: float) -> float:
        return float((share - p) ** 2 - z**2 * p * (1 - p) / of)

    low = 0.0 if hits == 0 else brentq(excess, 1e-12, share - 1e-6)
    high = 1.0 if hits == of else brentq(excess, share + 1e-6, 1 - 1e-12)
    return low, high


@pytest.mark.parametrize(("hits", "of"), [(0, 5), (1, 7), (5, 5), (225, 233), (50, 100), (1, 1)])
def test_wilson_is_the_inverse_of_the_score_test(hits: int, of: int) -> None:
    share = wilson(hits, of)
    assert share.value == hits / of
    assert (share.low, share.high) == pytest.approx(reference_wilson(hits, of), abs=1e-9)


def test_nothing_to_divide_is_no_share() -> None:
    assert wilson(0, 0).value is None


def test_a_setting_finds_what_the_rule_says() -> None:
    made = evidence(
        (1, 3, False, 0.5), (1, 4, False, 0.9), (0, 0, False, 0.6), (0, 2, False, 0.49),
        (UNLABELLED, 1, False, 0.7), (1, FAR, False, 0.9), (1, 30, True, 0.8),
    )  # fmt: skip
    assert is_found(made, NOW).tolist() == [True, False, True, False, True, False, False]
    found = score(made, NOW)
    assert (found.right, found.wrong, found.missed, found.unlabelled) == (1, 1, 3, 1)
    assert (found.precision.value, found.recall.value) == (0.5, 0.25)
    assert found.f1 == pytest.approx(2 / 6)
    with_sketches = PairSetting(3, sketches=True, similarity="word_jaccard", threshold=0.5)
    assert is_found(made, with_sketches).tolist() == [True, False, True, False, True, False, True]
    unchecked = PairSetting(3, sketches=False, similarity="none", threshold=0.0)
    assert is_found(made, unchecked).tolist() == [True, False, True, True, True, False, False]


def test_what_is_incomplete_is_not_counted() -> None:
    assert score(evidence((1, 0, False, 1.0), is_complete=False), NOW).unlabelled is None


def test_length_bands_have_their_own_scores() -> None:
    made = evidence((1, 0, False, 1.0), (1, 9, False, 1.0), (0, 0, False, 1.0))
    lengths = np.array([10, 500, 10], np.int64)
    made = Evidence(**{**vars(made), "lengths": lengths})
    bands = {(each.start, each.to): each.score for each in score_by_length(made, NOW)}
    assert list(bands) == [(0, 50), (400, None)]
    assert (bands[0, 50].right, bands[0, 50].wrong, bands[400, None].missed) == (1, 1, 1)


def test_the_bootstrap_draws_whole_groups() -> None:
    """Ten pairs in one group say as little as one: every draw has F1 0 or 1, or something between of two."""
    one = np.zeros((3, 2))
    one[0, 0], one[2, 1] = 10, 10
    (share,), _ = bootstrap([one])
    assert share.value == pytest.approx(2 / 3)
    assert (share.low, share.high) == (0.0, 1.0)
    many = np.zeros((3, 20))
    many[0, :10], many[2, 10:] = 1, 1
    (narrower,), _ = bootstrap([many])
    assert 0.2 < narrower.low < 2 / 3 < narrower.high < 0.95


def test_the_bootstrap_of_many_groups_is_that_of_a_proportion() -> None:
    """Without misses F1 is 2p/(1 + p) of the precision p, whose normal interval is known."""
    counts = np.zeros((3, 1000))
    counts[0, :800], counts[1, 800:] = 1, 1
    (share,), _ = bootstrap([counts])
    half = 1.96 * (0.8 * 0.2 / 1000) ** 0.5
    expected = [2 * p / (1 + p) for p in (0.8 - half, 0.8 + half)]
    assert [share.low, share.high] == pytest.approx(expected, abs=0.004)


def test_a_gain_is_paired() -> None:
    worse, better = np.zeros((3, 50)), np.zeros((3, 50))
    worse[0, :40], worse[2, 40:] = 1, 1
    better[0, :45], better[2, 45:] = 1, 1
    (_, _), gain = bootstrap([worse, better])
    assert gain.low > 0
    assert bootstrap([worse, worse])[1].high == 0


def separable(count: int = 60) -> Evidence:
    """Duplicates have a word Jaccard above 0.7 and any distance up to 8; the others lie below 0.6."""
    generator = np.random.default_rng(3)
    labels = np.arange(count) % 2
    made = evidence(*((int(label), int(generator.integers(0, 9)), False, 0.0) for label in labels))
    noise = generator.random(count)
    scores = dict.fromkeys(MEASURES, noise)
    scores["word_jaccard"] = np.where(labels == 1, 0.71 + noise / 5, noise * 0.59)
    return replace(made, measured=replace(made.measured, scores=scores))


def test_the_best_setting_is_found() -> None:
    chosen = best_setting(separable(), NOW)
    assert chosen.similarity == "word_jaccard"
    assert chosen.radius == 8
    assert 0.59 < chosen.threshold <= 0.71
    assert score(separable(), chosen).f1 == 1


def test_the_best_setting_leaves_out_the_kinds_that_are_excluded() -> None:
    """They would lower its precision, and so ask for a higher threshold."""
    groups = ((1, 5, 0.9, EDITED), (1, 5, 0.5, EDITED), (0, 20, 0.6, PARTIAL))
    made = evidence(*((label, 0, False, score) for label, count, score, _ in groups for _ in range(count)))
    kinds = np.repeat([kind for *_, kind in groups], [count for _, count, *_ in groups]).astype(np.uint8)
    measured = replace(made.measured, kinds=dict.fromkeys(MEASURES, kinds))
    now = replace(NOW, threshold=0.7, exclude_kinds=("partial",))
    chosen = best_setting(replace(made, measured=measured), now)
    assert chosen.threshold <= 0.5
    assert chosen.exclude_kinds == ("partial",)


def test_no_setting_of_the_grid_is_better_than_the_best() -> None:
    made = separable()
    noisy = Evidence(**{**vars(made), "labels": np.roll(made.labels, 7)})
    best = score(noisy, best_setting(noisy, NOW)).f1
    for radius in range(12):
        for name in MEASURES:
            for threshold in THRESHOLDS[::5].tolist():
                assert score(noisy, PairSetting(radius, False, name, threshold)).f1 <= best + 1e-12


def test_what_there_is_stays_where_nothing_is_better() -> None:
    perfect = PairSetting(8, sketches=True, similarity="word_jaccard", threshold=0.655)
    assert best_setting(separable(), perfect) == perfect


def test_settings_are_tried_with_long_grams_as_the_rule_counts_them() -> None:
    """Every measure says the same of all pairs; the long grams alone tell them apart."""
    made = evidence(*((label, 0, True, 0.9) for label in (0, 1) * 10))
    by_long_grams = np.array([0.3, 0.8] * 10)
    made = replace(made, measured=replace(made.measured, long_scores=by_long_grams))
    without = PairSetting(3, sketches=True, similarity="char_overlap", threshold=0.5)
    now = replace(without, long_grams=True)
    assert (score(made, now).f1, best_setting(made, now)) == (1, now)
    assert score(made, best_setting(made, replace(now, threshold=0.1))).f1 == 1
    assert score(made, best_setting(made, without)).f1 < 1
    assert made.only(made.labels == 1).measured.similarity(now).tolist() == [0.8] * 10


def test_cross_validation_judges_every_pair_without_its_own_label() -> None:
    made = separable()
    counts = cross_validate(made, made.labels.size, NOW)
    assert counts.sum() == pytest.approx(30)
    assert counts[0].sum() > 25
    generator = np.random.default_rng(0)
    chance = Evidence(**{**vars(made), "labels": generator.permutation(made.labels)})
    best = score(chance, best_setting(chance, NOW)).f1
    honest = counts_by_group(chance, is_found(chance, NOW), chance.labels.size)
    (_, cross_validated), _ = bootstrap([honest, cross_validate(chance, chance.labels.size, NOW)])
    assert cross_validated.value is not None
    assert cross_validated.value < best - 0.01, "labels without rhyme or reason cannot be learnt"


def test_a_step_says_how_many_pairs_come_and_how_many_are_wrong() -> None:
    made = evidence(
        (1, 5, False, 0.9), (1, 4, False, 0.9), (0, 5, False, 0.9), (UNLABELLED, 5, False, 0.9),
        (UNLABELLED, 4, False, 0.9), (UNLABELLED, 4, False, 0.9), (1, 0, False, 0.9),
    )  # fmt: skip
    wider = step(made, NOW, PairSetting(5, sketches=False, similarity="word_jaccard", threshold=0.5))
    assert (wider.added, wider.dropped) == (6, 0)
    assert wider.added_wrong.value == pytest.approx(2.0)
    assert wider.words == "radius 3 to 5 adds 6 pairs, about 2 of them wrong (1 to 3)"
    back = step(made, wider.after, NOW)
    assert back.words == "radius 5 to 3 drops 6 pairs, about 4 of them right (3 to 5)"
    unjudged = made.only(made.labels == UNLABELLED)
    assert step(unjudged, NOW, wider.after).words == "radius 3 to 5 adds 3 pairs, none of them labelled"
    assert step(made, NOW, NOW).words == "no change changes nothing"


def test_steps_differ_in_one_thing() -> None:
    for other in neighbours(NOW):
        assert sum(a != b for a, b in zip(vars(other).values(), vars(NOW).values(), strict=True)) == 1


def test_draws_of_many_groups_need_little_memory() -> None:
    counts = np.random.default_rng(3).integers(0, 3, (3, 3_000)).astype(np.float64)
    counts[0] += 1
    draws = np.random.default_rng(1).multinomial(3_000, np.full(3_000, 1 / 3_000), 2_000)
    right, wrong, missed = counts @ draws.T
    expected = np.percentile(2 * right / (2 * right + wrong + missed), [2.5, 97.5])
    tracemalloc.start()
    try:
        found = bootstrap([counts, counts])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    assert [(share.low, share.high) for share in found.shares] == [tuple(expected.tolist())] * 2
    assert (found.gain.low, found.gain.high) == (0, 0)
