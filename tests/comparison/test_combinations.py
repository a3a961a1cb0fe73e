"""Combinations on texts in English and Chinese, by hand; what cannot run is skipped, and the others go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import db_dedup
from db_dedup import ComparisonPlan, TextPair, compare_methods
from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.methods.comparison import LabelledTexts, compare_combinations
from db_dedup.methods.java import JARS_VARIABLE

NEAR = TextPair("the lift is broken again", "The lift is broken, again!", True)
PART = TextPair("夜间施工噪音扰民", "夜间施工扰民", True)
OTHER = TextPair("the lift is broken again", "buses are late every day", False)
SIMILAR = TextPair("the lift is broken again", "the heating is broken again", False)
PAIRS = (NEAR, PART, OTHER, SIMILAR)


class Steps:
    """Keeps what a progress bar is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int | None]] = []
        self.done = 0
        self.is_finished = False

    def start(self, step: str, total: int | None) -> None:
        self.told.append((step, total))

    def advance(self, amount: int) -> None:
        self.done += amount

    def finish(self) -> None:
        self.is_finished = True


def plan(segmenters: Sequence[str], features: Sequence[str], methods: Sequence[str]) -> ComparisonPlan:
    return ComparisonPlan(segmenters, features, methods, steps=["together"])


def by_words(features: str, *thresholds: float) -> ComparisonPlan:
    return ComparisonPlan(["words"], [features], ["jaccard"], {"jaccard": thresholds})


def test_jaccard_by_hand() -> None:
    found = compare_methods(PAIRS, plan(["chars:2"], ["none"], ["jaccard"]))
    # 夜间 间施 施工 工噪 噪音 音扰 扰民 against 夜间 间施 施工 工扰 扰民: 4 of 8 are shared.
    assert (found.texts, found.pairs, found.duplicates, found.not_there) == (6, 4, 2, 0)
    (trial,) = found.trials
    by_threshold = {score.threshold: score for score in trial.curve}
    assert by_threshold[0.5].right == 2
    assert by_threshold[0.55].right == 1, "4 of 8 are 0.5"
    assert not trial.is_distance
    assert found.best is trial


def test_words_are_cut_from_texts_in_one_spelling() -> None:
    found = compare_methods(PAIRS, by_words("none", 1, 0.6, 0.5))
    (trial,) = found.trials
    # Equal but for case and punctuation: 1. A Chinese text is one word here: 0. "the is broken again" is
    # shared by the lift and the heating: 4 of 6.
    assert [(score.right, score.wrong) for score in trial.curve] == [(1, 0), (1, 1), (1, 1)]
    assert trial.best.threshold == 1


def test_distances_rise() -> None:
    found = compare_methods(PAIRS, plan(["chars:2"], ["none"], ["simhash"]))
    (trial,) = found.trials
    assert trial.is_distance
    thresholds = [score.threshold for score in trial.curve]
    assert thresholds == sorted(thresholds)
    assert trial.curve[0].right <= trial.curve[-1].right


def test_what_is_not_installed_is_skipped_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    steps = Steps()
    chosen = plan(["hanlp-crf", "words"], ["none", "feature-codes"], ["jaccard", "simhash"])
    found = compare_methods(PAIRS, chosen, progress=steps)
    assert {each.combination.segmenter for each in found.skipped} == {"hanlp-crf"}
    assert {each.part for each in found.skipped} == {"segmenter"}
    (reason,) = {each.reason for each in found.skipped}
    assert 'pip install "db-dedup[methods]"' in reason or "DB_DEDUP_JARS" in reason
    assert [(each.combination.segmenter, each.combination.method) for each in found.trials] == [
        (None, "jaccard"),
        (None, "simhash"),
        ("words", "jaccard"),
        ("words", "simhash"),
    ]
    assert steps.told == [("combinations", 6)]
    assert steps.done == 6
    assert steps.is_finished


def test_features_that_cannot_be_made_are_skipped() -> None:
    texts = LabelledTexts(["a b"], np.array([0]), np.array([0]), np.array([True]))
    outcome = compare_combinations(texts, plan(["words"], ["tf-idf", "none"], ["jaccard", "cosine"]))
    assert {(each.part, each.combination.features) for each in outcome.skipped} == {("features", "tf-idf")}
    assert "needs a corpus" in outcome.skipped[0].reason
    assert [each.combination.features for each in outcome.trials] == ["none", "none"]


def test_nothing_that_can_run_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError, match=r"none of the combinations can run; the first one: .*is no"):
        compare_methods(PAIRS, plan(["ik-smart"], ["none"], ["jaccard"]))


def test_paragraphs_are_kept_for_feature_codes() -> None:
    pairs = [
        TextPair("one,\ntwo", "one,\nthree", True),
        TextPair("one, two", "one, three", False),
    ]
    found = compare_methods(pairs, by_words("feature-codes", 1))
    # Across the line nothing follows the mark, so the codes are equal.
    assert (found.best.best.right, found.best.best.wrong) == (1, 0)


def test_labels_of_both_kinds_are_needed() -> None:
    with pytest.raises(ConfigError, match=r"labels of both kinds are needed.*there are 1 and 0"):
        compare_methods([NEAR])
    with pytest.raises(ConfigError, match="there are 0 and 2"):
        compare_methods([OTHER, SIMILAR])
    with pytest.raises(ConfigError, match="there are 0 and 0"):
        compare_methods([])


def test_the_last_label_of_a_pair_counts() -> None:
    again = TextPair(NEAR.text_b, NEAR.text_a, False)
    with pytest.raises(ConfigError, match="there are 0 and 2"):
        compare_methods([NEAR, OTHER, again])


def test_bad_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="pair 2 has an empty text"):
        compare_methods([NEAR, TextPair("a", " \n", False)])
    with pytest.raises(InvalidArgumentError, match="a pair should be a TextPair, not a tuple"):
        compare_methods([("a", "b", True)])  # type: ignore[list-item]
    with pytest.raises(InvalidArgumentError, match="plan should be a ComparisonPlan, not a dict"):
        compare_methods(PAIRS, {})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="pairs should be a list of TextPair"):
        compare_methods("ab")  # type: ignore[arg-type]


def test_the_rules_of_the_product_stand_beside_them() -> None:
    found = compare_methods(PAIRS, plan(["words"], ["none"], ["jaccard"]))
    assert [rule.name for rule in found.rules] == ["strict", "balanced", "tweet"]
    assert all(rule.score.right + rule.score.missed == 2 for rule in found.rules)
    balanced = found.rules[1]
    assert (balanced.score.wrong, balanced.score.threshold) == (0, balanced.setting.threshold)
    assert balanced.score.right >= 1


def test_the_nearest_setting_decides_like_the_best_combination() -> None:
    found = compare_methods(PAIRS, by_words("none", 0.9))
    assert found.nearest is not None
    assert found.nearest.agreeing == len(PAIRS), "only the first pair is found"
    assert (found.nearest.score.right, found.nearest.score.wrong, found.nearest.score.missed) == (1, 0, 1)


def test_a_best_combination_that_finds_nothing_has_no_nearest_setting() -> None:
    found = compare_methods([PART, OTHER], by_words("none", 1))
    assert found.best.best.f1 == 0
    assert found.nearest is None


def test_all_types_are_public() -> None:
    assert {"Comparison", "Trial", "compare_methods"} <= set(db_dedup.__all__)
