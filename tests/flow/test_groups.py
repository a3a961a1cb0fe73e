"""Union-find, against scipy's connected components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from db_dedup.flow.matching import groups
from db_dedup.flow.matching.groups import flatten, group_sizes
from tests.flow.from_python import callable_from_python

find_root = callable_from_python(groups.find_root)

ROWS = 30
edges = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS - 1)), max_size=40)


def joined(pairs: list[tuple[int, int]]) -> NDArray[np.int32]:
    parents = np.arange(ROWS, dtype=np.int32)
    for pair in pairs:
        a, b = (find_root(parents, row) for row in pair)
        parents[max(a, b)] = min(a, b)
    return parents


@given(edges)
def test_the_root_is_the_first_row_of_the_component(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs, np.int32).reshape(-1, 2).T
    graph = sparse.coo_array((np.ones(left.size), (left, right)), shape=(ROWS, ROWS))
    _, component = connected_components(graph, directed=False)
    first = [int(np.flatnonzero(component == component[row])[0]) for row in range(ROWS)]
    parents = joined(pairs)
    assert [find_root(parents.copy(), row) for row in range(ROWS)] == first
    flatten(parents)
    assert parents.tolist() == first


@given(edges)
def test_sizes_stand_at_the_roots(pairs: list[tuple[int, int]]) -> None:
    parents = joined(pairs)
    flatten(parents)
    members = [parents.tolist().count(row) for row in range(ROWS)]
    assert group_sizes(parents).tolist() == members
    assert sum(members) == ROWS


@pytest.mark.parametrize("count", [0, 1])
def test_few_rows(count: int) -> None:
    parents = np.arange(count, dtype=np.int32)
    flatten(parents)
    assert group_sizes(parents).tolist() == [1] * count
