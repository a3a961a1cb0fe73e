"""What an outline rules out is certain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.outlines import NO_OUTLINES, may_share, outlines_of
from db_dedup.flow.similarity import MEASURES, least_shared_of, similarities, similarity_of

THRESHOLDS = st.sampled_from([0.3, 0.5, 0.57, 0.8, 1.0])
_RNG = np.random.default_rng(7)
_HASHES = np.unique(_RNG.integers(1, 2**64, 3000, np.uint64))
SETS = st.tuples(st.integers(1, 900), st.integers(1, 900), st.floats(0, 1))
"""The sizes of two sets, and the share of the smaller that both have."""


def two_rows(sizes: tuple[int, int, float]) -> tuple[np.ndarray, np.ndarray, int]:
    size_a, size_b, share = sizes
    shared = round(share * min(size_a, size_b))
    chosen = _RNG.permutation(_HASHES)
    a = np.sort(chosen[:size_a])
    b = np.sort(np.concatenate([chosen[:shared], chosen[size_a : size_a + size_b - shared]]))
    return np.array([0, a.size, a.size + b.size]), np.concatenate([a, b]), shared


@given(SETS)
def test_rows_may_share_what_they_do_share(sizes: tuple[int, int, float]) -> None:
    starts, hashes, shared = two_rows(sizes)
    outlines = outlines_of(starts, hashes)
    assert may_share(outlines, 0, 1, shared)
    assert may_share(outlines, 1, 0, shared)


@given(SETS, st.sampled_from(["jaccard", "overlap", "guarded_overlap"]), THRESHOLDS)
def test_rows_that_are_similar_share_the_least(
    sizes: tuple[int, int, float], measure: str, threshold: float
) -> None:
    starts, hashes, shared = two_rows(sizes)
    rows = np.array([0], np.int32), np.array([1], np.int32)
    similarity = similarities(measure, starts, hashes, np.ones(hashes.size, np.int64), *rows)[0]
    if similarity >= threshold:
        assert shared >= least_shared_of(MEASURES[measure], threshold, *np.diff(starts).tolist())


@pytest.mark.parametrize("size", [20, 200, 2000])
def test_rows_with_a_tenth_in_common_are_ruled_out(size: int) -> None:
    chosen = np.random.default_rng(size).integers(1, 2**64, 2 * size, np.uint64)
    a, b = np.sort(chosen[:size]), np.sort(chosen[size - size // 10 : 2 * size - size // 10])
    outlines = outlines_of(np.array([0, size, 2 * size]), np.concatenate([a, b]))
    assert not may_share(outlines, 0, 1, round(0.57 * size))


def test_without_outlines_nothing_is_ruled_out() -> None:
    assert may_share(NO_OUTLINES, 0, 1, 10)


def test_a_row_without_features_shares_nothing() -> None:
    outlines = outlines_of(np.array([0, 0, 1]), np.array([5], np.uint64))
    assert may_share(outlines, 0, 1, 0)
    assert not may_share(outlines, 0, 1, 1)


@given(SETS)
def test_a_comparison_stops_early_only_where_too_little_is_shared(sizes: tuple[int, int, float]) -> None:
    starts, hashes, shared = two_rows(sizes)
    row = starts, hashes, np.ones(hashes.size, np.int64), 0, 1
    overlap = shared / min(np.diff(starts))
    assert similarity_of(MEASURES["overlap"], *row, shared) == overlap
    assert similarity_of(MEASURES["overlap"], *row, shared + 1) in (0, overlap)
