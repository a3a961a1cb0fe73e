"""The three measures, against sets and dictionaries."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from db_dedup.flow.compare import kernels
from db_dedup.flow.compare.kernels import measure_number, similarities
from db_dedup.flow.compare.measures import MEASURES
from tests.flow.from_python import callable_from_python
from tests.flow.reference import Weights, features_of, similarity

least_shared = callable_from_python(kernels.least_shared)

# Few hashes, so that rows share some; two that differ in the top bit only.
hashes = st.sampled_from([1, 2, 3, 5, 8, 2**32, 2**63, 2**63 | 1, 2**64 - 1])
rows = st.dictionaries(hashes, st.integers(1, 10**6), max_size=8)
measures = st.sampled_from(list(MEASURES))


def measured(measure: str, table: list[Weights], pairs: list[tuple[int, int]]) -> list[float]:
    found = features_of(table)
    left, right = (np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))
    result = similarities(measure, found.starts, found.hashes, found.weights, left, right)
    assert result.dtype == np.float64
    values: list[float] = result.tolist()
    return values


@given(measures, st.lists(rows, min_size=1, max_size=6))
@example("cosine", [{1: 3, 2: 4}, {1: 6, 2: 8}, {}, {3: 1}])
def test_it_is_the_measure_of_its_name(measure: str, table: list[Weights]) -> None:
    pairs = [(a, b) for a in range(len(table)) for b in range(len(table))]
    expected = [similarity(measure, table[a], table[b]) for a, b in pairs]
    assert measured(measure, table, pairs) == pytest.approx(expected, rel=1e-12, abs=0)


@given(measures, rows, rows)
def test_it_is_symmetric_and_a_share(measure: str, a: Weights, b: Weights) -> None:
    there, back = measured(measure, [a, b], [(0, 1), (1, 0)])
    assert there == back
    assert 0 <= there <= 1
    if measure != "char_overlap":  # it has a floor
        assert (there > 0) == bool(a.keys() & b.keys())


@given(measures, rows.filter(bool), st.integers(1, 1000))
@example("cosine", {1: 136_825}, 787)
def test_equal_and_proportional_rows_are_wholly_similar(measure: str, row: Weights, factor: int) -> None:
    scaled = {key: weight * factor for key, weight in row.items()}
    found = measured(measure, [row, scaled], [(0, 1)])[0]
    assert found <= 1
    assert found == pytest.approx(1, rel=1e-15)


def test_by_hand() -> None:
    table: list[Weights] = [{1: 1, 2: 2, 3: 2}, {2: 2, 3: 2, 4: 4, 5: 1}, {2: 1, 3: 1}]
    assert measured("word_jaccard", table, [(0, 1), (0, 2)]) == [2 / 5, 2 / 3]
    assert measured("overlap", table, [(0, 1), (0, 2)]) == [2 / 3, 1]
    assert measured("cosine", table, [(0, 1)]) == [8 / (3 * 5)]


@pytest.mark.parametrize(
    ("smaller", "larger", "shared", "is_enough"),
    [
        (29, 29, 20, True),  # 20 / 38
        (29, 29, 19, False),  # 19 / 39
        (30, 30, 19, True),  # 19 / 41
        (38, 38, 23, True),  # five characters edited in a text of forty
        (59, 59, 36, True),  # 36 / 82
        (59, 59, 35, False),  # 35 / 83
        (60, 60, 35, True),
        (60, 140, 47, True),  # 47 / 153
        (60, 140, 46, False),  # 46 / 154
        (29, 290, 29, False),
        (30, 300, 24, True),
        (30, 300, 23, False),
        (6, 14, 6, True),  # 6 / 14, a half
        (5, 11, 5, False),
        (6, 15, 6, False),
        (7, 17, 7, True),  # 7 / 17
        (18, 38, 17, False),
        (20, 40, 19, True),  # 19 / 41
        (24, 58, 24, True),  # 24 / 58
        (25, 59, 25, True),  # 25 / 59
        (24, 59, 24, False),  # 24 / 59
        (29, 70, 29, True),  # the largest whole of a part that is not contained
        (29, 71, 29, False),
        (29, 58, 27, False),
    ],
)
def test_a_few_phrases_of_a_short_text_are_no_overlap(
    smaller: int, larger: int, shared: int, is_enough: bool
) -> None:
    a = dict.fromkeys(range(1, smaller + 1), 1)
    b = dict.fromkeys(range(smaller - shared + 1, smaller - shared + larger + 1), 1)
    share = shared / smaller if is_enough else 0
    assert measured("char_overlap", [a, b], [(0, 1)]) == [share]
    assert similarity("char_overlap", a, b) == share


@given(measures, st.integers(1, 100), st.integers(0, 100), st.data())
def test_whoever_shares_too_few_is_below_the_threshold(
    measure: str, smaller: int, more: int, data: st.DataObject
) -> None:
    shared = data.draw(st.integers(0, smaller))
    threshold = data.draw(st.sampled_from([0.3, 0.45, 0.57, 0.8, 1.0]))
    a = dict.fromkeys(range(smaller), 1)
    b = dict.fromkeys(range(smaller - shared, 2 * smaller - shared + more), 1)
    if shared < least_shared(measure_number(measure), threshold, smaller, smaller + more):
        assert similarity(measure, a, b) < threshold


@given(measures, st.integers(1, 100), st.integers(0, 100))
def test_the_bound_does_not_fall_as_the_larger_row_grows(measure: str, size: int, more: int) -> None:
    bounds = [least_shared(measure_number(measure), 0.57, size, size + each) for each in (0, more)]
    assert bounds == sorted(bounds)


def test_at_threshold_0_nothing_need_be_shared() -> None:
    for measure in MEASURES:
        assert least_shared(measure_number(measure), 0.0, 100, 100) == 0


def test_no_pair_no_similarity() -> None:
    assert measured("word_jaccard", [{1: 1}], []) == []


@pytest.mark.parametrize("measure", ["word_jaccard", "overlap"])
def test_only_the_cosine_looks_at_the_weights(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain Python, where a look past the end is an error and not whatever lies in memory there."""
    for name in ("_count_shared", "_product"):
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    found = features_of([{1: 1, 2: 1}, {2: 1, 3: 1}])
    monkeypatch.setattr(kernels, "_similarity", callable_from_python(kernels._similarity))
    as_python: Any = callable_from_python(kernels.similarity_of).py_func
    parts = (found.starts, found.hashes, np.empty(0, np.int64), 0, 1)
    assert 0 < as_python(measure_number(measure), *parts) < 1
    with pytest.raises(IndexError):
        as_python(measure_number("cosine"), *parts)
