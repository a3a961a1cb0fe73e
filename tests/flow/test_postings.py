"""Postings: the rows of each hash, and which of them share enough hashes with some sketches."""

from itertools import compress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.candidates import postings as module
from db_dedup.flow.candidates.postings import Postings, joined_postings, sharing_pairs
from tests.flow.reference import meet
from tests.flow.test_sketches import made, some_sketches

Entry = tuple[int, int]
ENTRIES = st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 5), st.integers(0, 200)), max_size=30)


def postings_of(entries: list[Entry]) -> Postings:
    return Postings.of(
        np.array([hashed for hashed, _ in entries], np.uint64),
        np.array([row for _, row in entries], np.int64),
    )


def listed(postings: Postings) -> list[Entry]:
    return list(zip(postings.entry_hashes.tolist(), postings.rows.tolist(), strict=True))


@given(ENTRIES, ENTRIES)
def test_lists_have_all_entries(one: list[Entry], other: list[Entry]) -> None:
    postings = joined_postings([postings_of(one), postings_of(other)])
    assert listed(postings) == sorted(one) + sorted(other)


@given(ENTRIES, st.sampled_from([0, 10**6]), st.sampled_from([np.int64, np.uint32]))
def test_rows_are_numbered_in_their_order(
    entries: list[Entry], scattered: int, kind: type[np.integer]
) -> None:
    """Whether their ids are close to each other or not."""
    entries = [(hashed, row + scattered * (row % 3)) for hashed, row in entries]
    postings = postings_of(entries)
    ids, numbered = postings._replace(rows=postings.rows.astype(kind)).numbered()
    assert ids.tolist() == sorted({row for _, row in entries})
    assert [(hashed, int(ids[row])) for hashed, row in listed(numbered)] == sorted(entries)


@given(ENTRIES, st.data())
def test_only_some_entries_are_kept(entries: list[Entry], data: st.DataObject) -> None:
    postings = postings_of(entries)
    is_kept = data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    some = postings.only(np.array(is_kept, np.bool_))
    assert listed(some) == list(compress(sorted(entries), is_kept))


@pytest.mark.parametrize("rows", [[], [3, 2**32 - 1], [3, 2**32]])
def test_rows_of_32_bits_take_half_of_the_memory(rows: list[int]) -> None:
    postings = postings_of([(1, row) for row in rows])
    narrowed = postings.narrowed()
    assert listed(narrowed) == listed(postings)
    assert (narrowed.rows.itemsize == 4) is (max(rows, default=0) < 2**32)


@given(some_sketches, some_sketches, st.integers(0, 6), st.integers(0, 6), st.sampled_from([1, 3]))
def test_who_meets_whom_is_told_by_the_lists(
    asked: list[set[int]], stored: list[set[int]], first: int, count: int, threads: int
) -> None:
    """Of a range of rows, whatever parts the lists come in, in one thread or in several."""
    wanted = set().union(*asked)
    entries = [(value, row) for row, some in enumerate(stored) for value in some if value in wanted]
    postings = joined_postings([postings_of(entries[::2]), postings_of(entries[1::2])])
    first = min(first, len(stored))
    end = min(first + count, len(stored))
    counts = np.array([*map(len, stored)], np.int64)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_ROWS_WORTH_THREADS", 0)
        which, rows = sharing_pairs(made(asked), postings, counts, first, end, threads=threads)
    found = list(zip(which.tolist(), rows.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == {
        (a, b) for a, one in enumerate(asked) for b in range(first, end) if meet(one, stored[b])
    }


def test_too_many_pairs_end_the_search() -> None:
    sketches = made([{2}] * 60)
    postings = postings_of([(2, row) for row in range(20)])
    counts = np.ones(20, np.int64)
    assert sharing_pairs(sketches, postings, counts)[0].size == 1200
    assert 99 < sharing_pairs(sketches, postings, counts, most=99)[0].size < 1200
