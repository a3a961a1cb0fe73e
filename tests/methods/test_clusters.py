"""Single-pass clustering."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.errors import ConfigError
from db_dedup.methods import single_pass


def test_by_hand() -> None:
    """7 is 3 bits from 0, 15 is one from 7 but 4 from 0: the first row of a cluster decides."""
    clusters = single_pass(np.array([0, 7, 15, 0, 31], np.uint64), 3)
    assert clusters.labels.tolist() == [0, 0, 1, 0, 1]
    assert clusters.comparisons == 0 + 1 + 1 + 1 + 2


@given(st.lists(st.integers(0, 255)), st.integers(0, 8))
def test_a_row_joins_the_first_cluster_that_is_near(values: list[int], radius: int) -> None:
    firsts: list[int] = []
    labels = []
    for value in values:
        near = [i for i, first in enumerate(firsts) if (first ^ value).bit_count() <= radius]
        if not near:
            firsts.append(value)
        labels.append(near[0] if near else len(firsts) - 1)
    assert single_pass(np.array(values, np.uint64), radius).labels.tolist() == labels


def test_comparisons_of_rows_that_are_all_alike_and_all_unlike() -> None:
    assert single_pass(np.zeros(50, np.uint64), 3).comparisons == 49
    unlike = np.uint64(1) << np.arange(50, dtype=np.uint64)
    assert single_pass(unlike, 1).comparisons == 50 * 49 // 2


@pytest.mark.parametrize("radius", [-1, 65])
def test_a_radius_that_cannot_be_is_refused(radius: int) -> None:
    with pytest.raises(ConfigError, match=f"a radius is 0 to 64 bits, not {radius}"):
        single_pass(np.zeros(2, np.uint64), radius)
