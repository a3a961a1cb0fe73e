"""Sorting and selecting, against Python and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow import _arrays
from db_dedup.flow._arrays import spread_order
from tests.flow.from_python import callable_from_python

bring_forward = callable_from_python(_arrays.bring_forward)

LARGEST = 2**64 - 1
anywhere = st.integers(0, LARGEST)
close = st.builds(lambda upper, lower: (upper << 40) | lower, st.integers(0, 3), st.integers(0, 300))


def ordered_by_numpy(values: list[int]) -> tuple[list[int], list[int]]:
    array = np.array(values, np.uint64)
    order = np.argsort(array, kind="stable")
    return order.tolist(), array[order].tolist()


def ordered(values: list[int]) -> tuple[list[int], list[int]]:
    order, in_order = spread_order(np.array(values, np.uint64))
    return order.tolist(), in_order.tolist()


@given(st.lists(anywhere | close | st.sampled_from([0, 1, 2**63, LARGEST])))
def test_the_order_is_that_of_numpy(values: list[int]) -> None:
    assert ordered(values) == ordered_by_numpy(values)


@pytest.mark.parametrize("bits", [8, 34, 64])
def test_many_values_are_ordered(bits: int) -> None:
    values = np.random.default_rng(1).integers(0, 2**bits - 1, 20_000, np.uint64, endpoint=True).tolist()
    assert ordered(values) == ordered_by_numpy(values)


@given(st.lists(st.tuples(st.integers(0, 9) | anywhere, anywhere), max_size=60, unique=True), st.data())
def test_the_first_values_are_brought_forward(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(pairs)))
    size = data.draw(st.integers(0, count))
    keys, values = np.array(pairs, np.uint64).reshape(-1, 2).T.copy()
    bring_forward(values, keys, count, size)
    moved = list(zip(keys.tolist(), values.tolist(), strict=True))
    assert sorted(moved[:size]) == sorted(pairs[:count])[:size]
    assert sorted(moved[:count]) == sorted(pairs[:count])
    assert moved[count:] == pairs[count:]
