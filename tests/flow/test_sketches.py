"""Sketches: sets of values that meet or do not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.flow.candidates import sketches as module
from db_dedup.flow.candidates.generators import RowHashes
from db_dedup.flow.candidates.sketches import (
    NO_SKETCHES,
    Sketches,
    concatenate_sketches,
    empty_sketches,
    entries,
    entries_of_part,
    join_hashes,
    least_in_common,
    runs_of_equal,
)
from tests.flow.from_python import callable_from_python
from tests.flow.reference import meet, sketches_of

share_enough = callable_from_python(module.share_enough)

values = st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.integers(2**63 - 2, 2**63 + 2)
rows = st.lists(st.sets(values, max_size=6), min_size=1, max_size=12)


def made(sets: list[set[int]]) -> Sketches:
    return sketches_of([np.array(sorted(some), np.uint64).tobytes() for some in sets])


def sets_of(sketches: Sketches) -> list[list[int]]:
    return [sketches.of(i).tolist() for i in range(sketches.counts.size)]


def full_sketch(owner: int, band: int, first: int, count: int) -> set[int]:
    """24 bands, all but one its owner's own, and passages that stand in a row."""
    bands = {2 * band, *(2 * (100 + 24 * owner + i) for i in range(23))}
    return bands | {2 * n + 1 for n in range(first, first + count)}


full_sketches = st.builds(
    full_sketch, st.integers(0, 40), st.integers(0, 20), st.integers(0, 50), st.integers(0, 50)
)
some_sketches = st.lists(full_sketches | st.sets(values, max_size=6), min_size=1, max_size=6)


@given(some_sketches)
def test_two_rows_meet_by_a_band_or_enough_passages(sets: list[set[int]]) -> None:
    sketches = made(sets)
    for a, first in enumerate(sets):
        for b, second in enumerate(sets):
            assert share_enough(sketches.starts, sketches.values, a, b) == meet(first, second)


@pytest.mark.parametrize(("passages", "least"), [(0, 1), (1, 1), (12, 1), (13, 2), (24, 2), (25, 3)])
def test_one_passage_in_twelve_must_be_common(passages: int, least: int) -> None:
    assert least_in_common(24 + passages) == least
    assert least_in_common(np.array([24 + passages])).tolist() == [least]


@given(rows, st.data())
def test_runs_hold_the_rows_of_each_value(sets: list[set[int]], data: st.DataObject) -> None:
    """However many parts they come in, and for any choice of rows; salts keep rows apart."""
    places = data.draw(st.permutations(range(len(sets))))[: data.draw(st.integers(0, len(sets)))]
    salts = data.draw(st.lists(st.sampled_from([0, 2**40 + 1]), min_size=len(places), max_size=len(places)))
    found = []
    count = data.draw(st.integers(1, 3))
    of_rows = made(sets), np.array(places, np.int64), np.array(salts, np.uint64)
    for part, owners in (entries_of_part(*of_rows, number, count) for number in range(count)):
        assert (np.diff(part.astype(object)) >= 0).all()
        run_rows, starts, values = runs_of_equal(part, owners)
        runs = [sorted(run.tolist()) for run in np.split(run_rows, starts[1:-1]) if run.size]
        found += list(zip(values.tolist(), runs, strict=True))
    sharing: dict[int, list[int]] = {}
    for row, (place, salt) in enumerate(zip(places, salts, strict=True)):
        for value in sets[place]:
            sharing.setdefault((value + salt) % 2**64, []).append(row)
    assert sorted(found) == sorted(each for each in sharing.items() if len(each[1]) > 1)


def test_many_entries_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES_A_PART", 100)
    chance = np.random.default_rng(2)
    sets = [set(chance.integers(0, 2**64, 20, np.uint64).tolist()) for _ in range(100)]
    parts = list(entries(made(sets), np.arange(100)))
    assert len(parts) == 20
    joined: NDArray[np.uint64] = np.concatenate([part for part, _ in parts])
    assert joined.tolist() == sorted(value for some in sets for value in some)


def test_bands_and_passages_in_one_sketch() -> None:
    bands = RowHashes(np.array([0, 2, 4]), np.array([9, 5, 5, 5], np.uint64))
    passages = RowHashes(np.array([0, 2, 2]), np.array([2**63, 5], np.uint64))
    assert sets_of(join_hashes(2, [bands], [passages])) == [[4, 5, 8, 2**63 + 1], [4]]
    assert sets_of(join_hashes(2, [], [passages])) == [[5, 2**63 + 1], []]


def test_several_generators_of_a_kind() -> None:
    one = RowHashes(np.array([0, 1, 3]), np.array([2, 4, 6], np.uint64))
    other = RowHashes(np.array([0, 2, 2]), np.array([10, 8], np.uint64))
    assert sets_of(join_hashes(2, [one, other], [])) == [[2, 8, 10], [4, 6]]


@given(rows)
def test_they_are_put_together_and_taken_apart(sets: list[set[int]]) -> None:
    sketches = made(sets)
    twice = concatenate_sketches([sketches, empty_sketches(2), sketches])
    assert sets_of(twice) == [*sets_of(sketches), [], [], *sets_of(sketches)]
    backwards = np.arange(len(sets))[::-1]
    assert sets_of(sketches.take(backwards)) == sets_of(sketches)[::-1]
    stored = [sketches.bytes_of(i) for i in range(len(sets))]
    assert sets_of(sketches_of(stored)) == sets_of(sketches)


def test_none() -> None:
    assert concatenate_sketches([]).counts.size == NO_SKETCHES.counts.size == 0
    assert list(entries(NO_SKETCHES, np.empty(0, np.int64))) == []
    assert not share_enough(NO_SKETCHES.starts, NO_SKETCHES.values, 0, 0)
