"""What a rescan or a batch writes of the pairs: those that differ from the stored ones."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.store.pairs import StoredPairs, differing_pairs

_IDS = st.tuples(st.integers(1, 6), st.integers(7, 9))
_VALUES = st.tuples(st.integers(0, 2), st.sampled_from([0.5, 0.75, math.nan]), st.integers(0, 2))
_PAIRS = st.dictionaries(_IDS, _VALUES)

Pairs = dict[tuple[int, int], tuple[int, float, int]]


def stored(pairs: Pairs) -> StoredPairs:
    columns = list(zip(*[(*ids, *values) for ids, values in pairs.items()], strict=True)) or [()] * 5
    kinds = (np.int64, np.int64, np.int16, np.float64, np.uint8)
    return StoredPairs(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def listed(pairs: StoredPairs) -> list[str]:
    """NaN is written as itself, and equals itself there."""
    return sorted(map(str, zip(*(column.tolist() for column in vars(pairs).values()), strict=True)))


@given(_PAIRS, _PAIRS)
def test_they_are_those_that_are_not_the_same_in_both(old: Pairs, new: Pairs) -> None:
    before, after = listed(stored(old)), listed(stored(new))
    lost, gained = differing_pairs(stored(old), stored(new))
    assert listed(lost) == sorted(set(before) - set(after))
    assert listed(gained) == sorted(set(after) - set(before))
