"""Scores at thresholds and the choice of one, worked by hand."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.methods import METHODS
from db_dedup.methods.comparison import best_score, score_curve, score_found
from db_dedup.records import ThresholdScore

LABELS = np.array([True, True, False, True, False])


def test_a_similarity_must_reach_the_threshold() -> None:
    values = np.array([0.9, 0.6, 0.6, 0.4, 0.1])
    curve = score_curve(METHODS["jaccard"], values, LABELS, (0.95, 0.9, 0.6, 0.4, 0.05))
    assert [astuple(score) for score in curve] == [
        (0.95, 0, 0, 3, None, 0.0, 0.0),
        (0.9, 1, 0, 2, 1.0, pytest.approx(1 / 3), pytest.approx(1 / 2)),
        (0.6, 2, 1, 1, pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (0.4, 3, 1, 0, 0.75, 1.0, pytest.approx(6 / 7)),
        (0.05, 3, 2, 0, 0.6, 1.0, 0.75),
    ]
    assert best_score(curve).threshold == 0.4


def test_a_distance_must_not_exceed_the_threshold() -> None:
    values = np.array([0.0, 3.0, 3.0, np.inf, 12.0])
    curve = score_curve(METHODS["simhash"], values, LABELS, (0.0, 2.0, 3.0, 12.0))
    assert [(score.threshold, score.right, score.wrong, score.missed) for score in curve] == [
        (0.0, 1, 0, 2),
        (2.0, 1, 0, 2),
        (3.0, 2, 1, 1),
        (12.0, 2, 2, 1),
    ]
    assert best_score(curve).threshold == 3.0, "a text without features is found at no distance"


@pytest.mark.parametrize(
    ("f1", "expected"),
    [
        ([0.1, 0.5, 0.2], 1),
        ([0.5, 0.5, 0.5, 0.2], 1),
        ([0.2, 0.5, 0.5, 0.1], 1),
        ([0.5, 0.2, 0.5, 0.5, 0.5], 0),
        ([0.0, 0.4, 0.4, 0.4, 0.4, 0.4], 3),
        ([0.7], 0),
    ],
)
def test_of_equally_good_neighbours_the_middle_one_is_best(f1: list[float], expected: int) -> None:
    curve = [ThresholdScore(place, 0, 0, 0, None, 0.0, value) for place, value in enumerate(f1)]
    assert best_score(curve).threshold == expected


def test_nothing_found_and_nothing_to_find() -> None:
    nothing = score_found(np.zeros(2, np.bool_), np.zeros(2, np.bool_), 0.5)
    assert astuple(nothing) == (0.5, 0, 0, 0, None, 0.0, 0.0)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=30))
def test_recall_never_falls_as_the_threshold_loosens(pairs: list[tuple[int, bool]]) -> None:
    labels = np.array([label for _, label in pairs])
    for name, scale in (("simhash", 1.0), ("jaccard", 0.05)):
        entry = METHODS[name]
        values = np.array([value for value, _ in pairs]) * scale
        curve = score_curve(entry, values, labels, entry.thresholds)
        recalls = [score.recall for score in curve]
        assert recalls == sorted(recalls)
        assert all(score.right + score.missed == labels.sum() for score in curve)
        assert all(score.wrong <= (~labels).sum() for score in curve)
