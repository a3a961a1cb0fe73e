"""An abridged group that has lost rows is bridged by as many pairs as it needs."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, given
from hypothesis import strategies as st

from db_dedup.flow.matching.reconnection import bridge, find_gaps

Pairs = set[tuple[int, int]]


@st.composite
def trees(draw: st.DrawFn) -> Pairs:
    """The pairs that connect the rows from 0 on."""
    size = draw(st.integers(2, 12))
    return {(draw(st.integers(0, row - 1)), row) for row in range(1, size)}


def components(rows: set[int], pairs: Pairs) -> int:
    root = {row: row for row in rows}
    for a, b in pairs:
        before, after = root[a], root[b]
        root = {row: after if r == before else r for row, r in root.items()}
    return len(set(root.values()))


def pairs_of(tree: Pairs, lost: set[int]) -> Pairs:
    return {pair for pair in tree if not lost.isdisjoint(pair)}


@given(trees(), st.data())
def test_bridges_connect_all_rows_and_close_no_circle(tree: Pairs, data: st.DataObject) -> None:
    rows = {row for pair in tree for row in pair}
    lost = data.draw(st.sets(st.sampled_from(sorted(rows)), min_size=1))
    back = data.draw(st.sets(st.sampled_from(sorted(lost))))
    kept = rows - lost
    known = data.draw(st.sets(st.sampled_from(list(combinations(sorted(kept | back), 2)) or [(0, 0)])))
    gaps = find_gaps(lost, pairs_of(tree, lost))
    found = [bridge(gap, gap.lost & back, known) for gap in gaps]
    assume(kept and None not in found)
    bridges = {pair for one in found if one for pair in one}
    assert bridges <= known
    stored = (tree - pairs_of(tree, lost)) | bridges
    joined = kept | {row for pair in bridges for row in pair}
    assert components(joined, stored) == 1
    assert len(stored) == len(joined) - 1


@given(trees(), st.data())
def test_a_gap_stays_open_only_where_its_neighbours_are_not_connected(
    tree: Pairs, data: st.DataObject
) -> None:
    rows = sorted({row for pair in tree for row in pair})
    lost = {data.draw(st.sampled_from(rows))}
    for gap in find_gaps(lost, pairs_of(tree, lost)):
        known = data.draw(st.sets(st.sampled_from(list(combinations(sorted(gap.neighbours), 2)))))
        is_connected = components(set(gap.neighbours), known) == 1
        assert (bridge(gap, (), known) is not None) == is_connected


def test_a_row_with_one_neighbour_leaves_no_gap() -> None:
    assert find_gaps({3}, [(1, 3)]) == []
    assert [sorted(gap.neighbours) for gap in find_gaps({3, 4}, [(1, 3), (3, 4), (2, 4)])] == [[1, 2]]
