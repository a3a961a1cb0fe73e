"""Which combinations there are in each step, and names and thresholds that cannot be."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from db_dedup.errors import ConfigError, InvalidArgumentError, UnknownNameError
from db_dedup.methods import FEATURES, METHODS, SEGMENTERS, cityhash64
from db_dedup.methods.plan import ComparisonPlan
from db_dedup.records import Combination
from tests.methods.corpora import corpus

TWO_OF_EACH: dict[str, Any] = {
    "segmenters": ["words", "chars:2"],
    "features": ["frequency", "shingles:2"],
    "methods": ["jaccard", "simhash"],
}


def names(plan: ComparisonPlan) -> list[tuple[str, str | None, str, str]]:
    found = plan.combinations().items()
    return [(step, each.segmenter, each.features, each.method) for each, step in found]


def test_each_combination_occurs_in_its_first_step() -> None:
    assert names(ComparisonPlan(**TWO_OF_EACH)) == [
        ("alone", "words", "frequency", "simhash"),
        ("alone", "chars:2", "frequency", "simhash"),
        ("alone", "words", "shingles:2", "simhash"),
        ("alone", "words", "frequency", "jaccard"),
        ("cross", "chars:2", "shingles:2", "simhash"),
        ("cross", "chars:2", "frequency", "jaccard"),
        ("cross", "words", "shingles:2", "jaccard"),
        ("together", "chars:2", "shingles:2", "jaccard"),
    ]


def test_a_step_alone_has_all_of_its_combinations() -> None:
    only = names(ComparisonPlan(**TWO_OF_EACH, steps=["together"]))
    assert len(only) == 8
    assert {step for step, *_ in only} == {"together"}
    assert len(names(ComparisonPlan(**TWO_OF_EACH, steps=["cross"]))) == 7


def test_combinations_that_give_the_same_result_are_left_out() -> None:
    plan = ComparisonPlan(
        ["words", "chars:2"],
        ["none", "frequency", "feature-codes"],
        ["jaccard", "cosine"],
        steps=["together"],
    )
    assert [each[1:] for each in names(plan)] == [
        ("words", "none", "jaccard"),
        ("words", "none", "cosine"),
        ("words", "frequency", "cosine"),
        (None, "feature-codes", "jaccard"),
        (None, "feature-codes", "cosine"),
        ("chars:2", "none", "jaccard"),
        ("chars:2", "none", "cosine"),
        ("chars:2", "frequency", "cosine"),
    ]


@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if not entry.uses_weights])
def test_a_method_without_weights_judges_all_features_that_are_words_alike(method: str) -> None:
    texts = corpus("a b c c d", "a b c e", "a b", "x y x y z", "q")
    left, right = np.triu_indices(5)
    found = [
        METHODS[method].load()(entry.load()(texts, cityhash64))(left, right).tolist()
        for entry in FEATURES.values()
        if entry.is_words
    ]
    assert len(found) == 4
    assert all(values == found[0] for values in found)


def test_the_default_has_all_of_the_papers() -> None:
    plan = ComparisonPlan()
    assert {name for name, entry in SEGMENTERS.items() if entry.papers} <= set(plan.segmenters)
    assert {name for name, entry in METHODS.items() if entry.papers} <= set(plan.methods)
    assert plan.segmenters[0] == "jieba"
    assert plan.features[0] == "none"
    combinations = plan.combinations()
    assert Combination("jieba-full", "none", "minhash:100") in combinations


def test_thresholds_are_those_that_are_given_or_the_grid() -> None:
    plan = ComparisonPlan(thresholds={"simhash": [3, 2, 3], "jaccard": [0.2, 0.5]})
    assert plan.thresholds_of("simhash") == (2, 3)
    assert plan.thresholds_of("jaccard") == (0.5, 0.2)
    assert plan.thresholds_of("cosine") == METHODS["cosine"].thresholds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"segmenters": ["jeiba"]}, "unknown segmenter 'jeiba': did you mean jieba"),
        ({"features": ["?"]}, f"unknown features '?': there is {', '.join(sorted(FEATURES))}"),
        ({"methods": ["?"]}, f"unknown method '?': there is {', '.join(sorted(METHODS))}"),
        ({"steps": ["?"]}, "unknown step '?': there is alone, cross, together"),
        ({"methods": []}, "method: a list of at least one name is needed"),
        ({"methods": "jaccard"}, "method: a list of at least one name is needed"),
        (
            {"thresholds": {"jaccard": [1.5]}},
            "1.5 is no threshold of jaccard: it is a similarity, from",
        ),
        ({"thresholds": {"simhash": [-1]}}, "-1 is no threshold of simhash: it is a distance in bits, 0 or"),
        ({"thresholds": {"simhash": [float("nan")]}}, "nan is no threshold of simhash"),
        ({"thresholds": {"simhash": ["a"]}}, "'a' is no threshold of simhash"),
        ({"thresholds": {"cosine": []}}, "cosine: at least one threshold is needed"),
        (
            {"methods": ["cosine"], "thresholds": {"jaccard": [1]}},
            "unknown method with a threshold",
        ),
    ],
)
def test_what_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as failed:
        ComparisonPlan(**given)
    assert isinstance(failed.value, UnknownNameError | InvalidArgumentError)
