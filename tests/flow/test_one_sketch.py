"""Which rows share enough hashes with a single sketch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.candidates import one_sketch
from db_dedup.flow.candidates.one_sketch import UNREAD_SIZE, CountedRows, share_enough
from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE, SizeTable
from tests.flow.reference import meet
from tests.flow.test_postings import postings_of
from tests.flow.test_sketches import full_sketches

ID_BITS = 4
HIGHEST_ID = 55


@given(full_sketches, st.lists(full_sketches, min_size=1, max_size=6), st.data())
def test_the_rows_that_meet_a_sketch_are_found(
    asked: set[int], stored: list[set[int]], data: st.DataObject
) -> None:
    """Whether their sizes are in the table, are not stored, are in a missing part, or have changed."""
    ids = data.draw(
        st.lists(st.integers(0, HIGHEST_ID), min_size=len(stored), max_size=len(stored), unique=True)
    )
    changed, stored_sizes = data.draw(st.sets(st.sampled_from(ids))), data.draw(st.sets(st.sampled_from(ids)))
    sizes = np.zeros(HIGHEST_ID + 1, np.uint8)
    for row_id, some in zip(ids, stored, strict=True):
        if row_id in changed:
            sizes[row_id] = 255 * data.draw(st.booleans())  # that of a former text
        elif row_id in stored_sizes:
            sizes[row_id] = len(some)
    # Parts of 16 ids: the second one is not there, and the fourth one is past the end.
    table = SizeTable(np.concatenate([sizes[32:48], sizes[:16]]), np.array([1, -1, 0], np.int64))
    is_missing = {row_id for row_id in ids if 16 <= row_id < 32 or row_id >= 48}

    found = counted_rows(asked, dict(zip(ids, stored, strict=True)), changed, table)

    own = dict(zip(ids, map(len, stored), strict=True))
    for row_id, size in zip(found.ids.tolist(), found.sizes.tolist(), strict=True):
        if row_id in changed:
            assert size == UNKNOWN_SIZE
        elif row_id in is_missing:
            assert size == UNREAD_SIZE
        else:
            assert size == (own[row_id] if row_id in stored_sizes else UNKNOWN_SIZE)
    counts = np.array([own[row_id] for row_id in found.ids.tolist()], np.int64)
    meeting = found.ids[share_enough(len(asked), found.common, counts)].tolist()
    assert meeting == sorted(i for i, some in zip(ids, stored, strict=True) if meet(asked, some))


@given(full_sketches, st.lists(full_sketches, min_size=1, max_size=6))
def test_rows_of_known_sizes_that_share_too_little_are_left_out(
    asked: set[int], stored: list[set[int]]
) -> None:
    rows = dict(enumerate(stored))
    table = SizeTable(
        np.array([*map(len, stored), *[0] * (16 - len(stored))], np.uint8), np.zeros(1, np.int64)
    )
    found = counted_rows(asked, rows, set(), table)
    assert found.ids.tolist() == [i for i, some in rows.items() if meet(asked, some)]


@pytest.mark.parametrize(("size", "shared"), [(255, 300), (UNKNOWN_SIZE, 6000)])
def test_a_row_may_share_more_hashes_than_a_byte_counts(size: int, shared: int) -> None:
    hashes = list(range(1, 12001, 2))
    table = SizeTable(np.full(16, size, np.uint8), np.zeros(1, np.int64))
    found = counted_rows(set(hashes), {3: set(hashes[:shared])}, set(), table)
    assert (found.ids.tolist(), found.sizes.tolist()) == ([3], [size])
    assert share_enough(len(hashes), found.common, np.array([shared])).all()


def counted_rows(
    asked: set[int], stored: dict[int, set[int]], changed: set[int], table: SizeTable
) -> CountedRows:
    entries = [(value, row_id) for row_id, some in stored.items() for value in some if value in asked]
    postings = postings_of(entries)
    is_changed = np.isin(postings.rows, sorted(changed))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(one_sketch, "ID_BITS", ID_BITS)
        return CountedRows.of(len(asked), postings, np.empty(0, np.uint32), is_changed, table)
