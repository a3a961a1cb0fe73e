"""The fingerprints in memory: whatever was put in and taken out, every near row is found, once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.candidates import fingerprint_index
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex

# Few bits set or left out: near each other, and with the top bit in play.
values = st.lists(st.integers(0, 63), max_size=8).map(
    lambda bits: sum({1 << bit for bit in bits})
) | st.lists(st.integers(0, 63), max_size=8).map(lambda bits: (1 << 64) - 1 - sum({1 << bit for bit in bits}))
ids = st.integers(0, 15)


@pytest.mark.parametrize("later_at_most", [0, 3, 8192])
def test_what_is_near_is_found(monkeypatch: pytest.MonkeyPatch, later_at_most: int) -> None:
    monkeypatch.setattr(fingerprint_index, "_LATER_AT_MOST", later_at_most)

    @given(
        st.dictionaries(ids, values, max_size=12),
        st.lists(st.dictionaries(ids, values, max_size=4) | st.lists(ids, max_size=4), max_size=9),
        st.lists(values, max_size=4),
        st.integers(0, 11),
    )
    def check(
        first: dict[int, int], later: list[dict[int, int] | list[int]], asked: list[int], radius: int
    ) -> None:
        index = FingerprintIndex(np.array(list(first), np.int64), np.array(list(first.values()), np.uint64))
        held = dict(first)
        for changed in later:
            if isinstance(changed, dict):
                index.put(changed)
                held |= changed
            else:
                index.remove(changed)
                held = {row_id: value for row_id, value in held.items() if row_id not in changed}
        assert len(index) == len(held)
        which, found, distances = index.find_near(np.array(asked, np.uint64), radius)
        hits = sorted(zip(which.tolist(), found.tolist(), distances.tolist(), strict=True))
        assert hits == sorted(
            (q, row_id, distance)
            for q, value in enumerate(asked)
            for row_id, other in held.items()
            if (distance := (value ^ other).bit_count()) <= radius
        )

    check()
