"""The sizes of sketches beside the segments."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE, pack_sizes, size_pieces_of, sizes_in


@given(st.dictionaries(st.integers(0, 2**40), st.integers(1, 300), max_size=30))
def test_sizes_come_back(stored: dict[int, int]) -> None:
    ids = np.array([*stored], np.int64)
    parts = list(pack_sizes(ids, np.array([*stored.values()], np.int64)))
    assert [part.part for part in parts] == [0] * len(parts)
    assert len({part.piece for part in parts}) == len(parts)
    found = sizes_in({part.piece: part.packed for part in parts}, np.sort(ids))
    assert found.tolist() == [min(stored[row_id], 255) for row_id in sorted(stored)]


def test_no_piece_has_the_number_of_a_segment() -> None:
    assert size_pieces_of(np.array([0, 1, 2**40])).max() == -1


def test_a_size_that_is_not_stored_is_unknown() -> None:
    part = next(pack_sizes(np.array([5]), np.array([40])))
    pieces = {part.piece: part.packed}
    assert sizes_in(pieces, np.array([4, 5, 9000])).tolist() == [UNKNOWN_SIZE, 40, UNKNOWN_SIZE]
    assert sizes_in({part.piece: part.packed[:3]}, np.array([5])).tolist() == [UNKNOWN_SIZE]
