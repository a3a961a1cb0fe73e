"""The bits of the rows that have changed since the segments were written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.candidates import changed_rows
from db_dedup.flow.candidates.changed_rows import ChangedRows, changed_pieces_of
from db_dedup.flow.candidates.postings import entries_in, joined_postings
from db_dedup.flow.candidates.set_pieces import set_pieces_of
from tests.flow.test_postings import postings_of

IDS = st.sets(st.integers(0, 40) | st.integers(2**16 - 3, 2**16 + 3) | st.integers(2**33, 2**33 + 9))


def rows_of(ids: set[int]) -> np.ndarray:
    return np.array(sorted(ids), np.int64)


@given(st.lists(IDS, max_size=4), IDS)
def test_bits_are_those_of_all_rows_that_were_added(added: list[set[int]], asked: set[int]) -> None:
    pieces: dict[int, bytes] = {}
    for some in added:
        wanted = {number: pieces[number] for number in changed_pieces_of(rows_of(some)) if number in pieces}
        pieces |= {part.piece: part.packed for part in ChangedRows(wanted).with_rows(rows_of(some))}
    every = set().union(*added)
    ids = rows_of(asked | every)
    assert ChangedRows(pieces).are(ids).tolist() == [row_id in every for row_id in ids.tolist()]
    narrow = ids[ids < 2**32].astype(np.uint32)
    assert ChangedRows(pieces).are(narrow).tolist() == [row_id in every for row_id in narrow.tolist()]


def test_a_damaged_piece_is_refused() -> None:
    ids = np.arange(10)
    (part,) = ChangedRows({}).with_rows(ids)
    assert ChangedRows({part.piece: part.packed}).are(ids).all()
    assert not ChangedRows({part.piece: b""}).are(ids).any()
    with pytest.raises(ValueError, match="too short"):
        ChangedRows({part.piece: part.packed[:-1]})


def test_many_rows_are_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_rows, "_ROWS_AT_A_TIME", 3)
    (part,) = ChangedRows({}).with_rows(np.array([2, 5, 9]))
    found = ChangedRows({part.piece: part.packed}).are(np.arange(11))
    assert np.flatnonzero(found).tolist() == [2, 5, 9]


def test_pieces_of_bits_and_of_sets_have_other_numbers() -> None:
    ids = np.array([0, 1, 10**9, 10**11])
    assert min(changed_pieces_of(ids)) >= -(2**31)
    assert max(changed_pieces_of(ids)) < set_pieces_of(ids).min()


ENTRIES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=30)


@given(ENTRIES, ENTRIES, st.lists(st.tuples(st.integers(0, 12), st.integers(-1, 9)), max_size=20))
def test_entries_in_lists(
    one: list[tuple[int, int]], other: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    """In one list of several for each hash; below zero there is no row."""
    lists = joined_postings([postings_of(sorted(one)), postings_of(sorted(other))])
    hashes = np.array([hashed for hashed, _ in asked], np.uint32)
    found = entries_in(lists, hashes, np.array([row_id for _, row_id in asked], np.int64))
    assert found.tolist() == [entry in {*one, *other} and entry[1] >= 0 for entry in asked]
