"""The sentences that end a comparison, on results made by hand."""

from __future__ import annotations

from dataclasses import replace

from db_dedup.present.comparison_words import (
    closing_lines,
    in_cells,
    skipped_lines,
    trial_row,
    trial_tables,
)
from db_dedup.records import (
    Combination,
    Comparison,
    NearestSetting,
    PairSetting,
    RuleTrial,
    SkippedTrial,
    ThresholdScore,
    Trial,
)
from db_dedup.records.comparison import Step

SETTING = PairSetting(3, sketches=True, similarity="overlap", threshold=0.55)
GOOD = ThresholdScore(0.5, 9, 1, 1, 0.9, 0.9, 0.9)
FAIR = ThresholdScore(0.55, 8, 2, 2, 0.8, 0.8, 0.8)
POOR = ThresholdScore(0.57, 7, 3, 3, 0.7, 0.7, 0.7)
BEST = Trial(Combination("words", "none", "jaccard"), "alone", GOOD, (GOOD,), False, 1.0, 0.5)
OTHER = Trial(Combination(None, "feature-codes", "simhash"), "alone", POOR, (POOR,), True, 1.0, 0.5)
STRICT = RuleTrial("strict", "jieba", "raw", SETTING, POOR, 1.0, 0.5)
BALANCED = replace(STRICT, name="balanced", score=FAIR)
NEAREST = NearestSetting("words", "set", SETTING, GOOD, 19, {"segmenter": "words", "threshold": 0.55})
FOUND = Comparison(
    None, 30, 20, 10, 0, (BEST, OTHER), (), (STRICT, BALANCED), BEST, NEAREST, BEST.combination
)

NEAREST_WORDS = "Nearest setting of db_dedup: radius 3 with sketches, overlap of at least 0.55"
GOOD_WORDS = "F1 0.900 (precision 0.900, recall 0.900)"
FAIR_WORDS = "F1 0.800 (precision 0.800, recall 0.800)"


def test_each_list_alone_has_a_table_with_the_first_combination() -> None:
    first = Combination("words", "none", "simhash")

    def trial(f1: float, *names: str | None, step: Step = "alone") -> Trial:
        segmenter, features, method = names
        assert features is not None
        assert method is not None
        return replace(
            BEST, combination=Combination(segmenter, features, method), step=step, best=_scored(f1)
        )

    trials = (
        trial(0.5, "words", "none", "simhash"),
        trial(0.7, "chars:2", "none", "simhash"),
        trial(0.4, "words", "tf-idf", "simhash"),
        trial(0.9, None, "feature-codes", "simhash"),
        trial(0.6, "words", "none", "jaccard"),
        trial(0.8, "chars:2", "none", "jaccard", step="cross"),
    )
    tables = list(trial_tables(replace(FOUND, trials=trials, first=first)))
    assert [(table.title, table.parts) for table in tables] == [
        ("Each step alone: segmenters, with features none and method simhash", ("segmenter",)),
        ("Each step alone: features, with segmenter words and method simhash", ("features",)),
        ("Each step alone: methods, with segmenter words and features none", ("method",)),
        ("Two steps crosswise", ("segmenter", "features", "method")),
    ]
    assert [[each.best.f1 for each in table.trials] for table in tables] == [
        [0.7, 0.5],
        [0.9, 0.5, 0.4],
        [0.6, 0.5],
        [0.8],
    ]
    (only,) = trial_tables(replace(FOUND, trials=trials[:1], first=first))
    assert (only.title, only.trials) == ("Each step alone", [trials[0]])


def _scored(f1: float) -> ThresholdScore:
    return replace(GOOD, f1=f1)


def test_the_best_method_the_best_preset_and_the_nearest_setting() -> None:
    assert list(closing_lines(FOUND)) == [
        f"Best on these labels: jaccard of none, segmenter words, at least 0.5: {GOOD_WORDS}.",
        "It was chosen by the labels that judge it, out of 2 combinations: on other pairs expect less.",
        f"The preset balanced: {FAIR_WORDS}; its F1 is 0.100 below the best method.",
        f"{NEAREST_WORDS}, which decides 19 of 20 pairs as it does: {GOOD_WORDS}. For dedup.toml:",
        "[tables.NAME]",
        'preset = "balanced"',
        'segmenter = "words"',
        "threshold = 0.55",
    ]


def test_a_table_is_compared_by_its_own_settings() -> None:
    own = replace(STRICT, name=None, score=POOR)
    found = replace(FOUND, table="信访 件", rules=(own, BALANCED), trials=(BEST,))
    lines = list(closing_lines(found))
    assert lines[1].startswith("The settings of the table: F1 0.700")
    assert lines[1].endswith("; its F1 is 0.200 below the best method.")
    assert lines[3:] == ['[tables."信访 件"]', 'segmenter = "words"', "threshold = 0.55"]


def test_a_setting_that_does_no_better_is_not_recommended() -> None:
    *_, last = closing_lines(replace(FOUND, nearest=replace(NEAREST, score=FAIR)))
    assert last == (
        "On these labels it does no better than the preset balanced: there is no reason to change."
    )
    *_, last = closing_lines(replace(FOUND, nearest=replace(NEAREST, changes={}, score=FAIR)))
    assert last == (
        "Nearest setting of db_dedup: the preset balanced, which decides 19 of 20 pairs as it does: "
        f"{FAIR_WORDS}."
    )


def test_the_product_may_be_as_good_and_a_distance_has_bits() -> None:
    good = replace(BALANCED, score=GOOD)
    distance = replace(OTHER, best=replace(GOOD, threshold=3.0))
    lines = list(closing_lines(replace(FOUND, rules=(STRICT, good), best=distance, nearest=None)))
    assert lines[0] == f"Best on these labels: simhash of feature-codes, at most 3 bits: {GOOD_WORDS}."
    assert lines[2:] == [f"The preset balanced: {GOOD_WORDS}; no method here has a better F1."]


def test_what_was_skipped_for_the_same_reason_is_one_line() -> None:
    def skipped(segmenter: str, method: str, reason: str) -> SkippedTrial:
        return SkippedTrial(Combination(segmenter, "none", method), "alone", "segmenter", reason)

    found = replace(
        FOUND,
        skipped=(
            skipped("ik-fine", "jaccard", "no jar of IK"),
            skipped("ik-smart", "jaccard", "no jar of IK"),
            skipped("ik-fine", "simhash", "no jar of IK"),
            skipped("thulac", "jaccard", "no thulac"),
        ),
    )
    assert list(skipped_lines(found)) == [
        "skipped segmenter ik-fine, ik-smart (3 combinations): no jar of IK",
        "skipped segmenter thulac (1 combination): no thulac",
    ]


def test_a_row_for_people() -> None:
    nothing = replace(OTHER, best=ThresholdScore(0.0, 0, 0, 1234, None, 0.0, 0.0))
    *names, feature_seconds, comparison_seconds = in_cells(trial_row(nothing))
    shares, counts = ["0", "-", "0.000", "0.000"], ["0", "0", "1,234"]
    assert names == ["alone", "", "feature-codes", "simhash", *shares, *counts]
    assert (feature_seconds, comparison_seconds) == ("1.000", "0.5000")
