"""Which column turned which bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.flow.features.counting import Features, concatenate_features
from db_dedup.flow.fingerprints.bit_shares import bit_sums, share_differing_bits
from db_dedup.flow.fingerprints.simhash import fingerprint_rows

COLUMNS = 3

# Few different hashes, so that columns and rows share some of them.
column = st.dictionaries(
    st.one_of(st.sampled_from([2, 3, 2**63, 2**64 - 1]), st.integers(2, 2**64 - 1)),
    st.integers(1, 2**40),
    max_size=6,
)
row = st.lists(column, min_size=COLUMNS, max_size=COLUMNS)
Column = dict[int, int]


def features(found: Column) -> Features:
    hashes = sorted(found)
    return Features(
        np.array([0, len(hashes)], np.int64),
        np.array(hashes, np.uint64),
        np.array([found[value] for value in hashes], np.int64),
    )


def sums_of(columns: list[Column]) -> NDArray[np.int64]:
    joined = concatenate_features([features(found) for found in columns])
    return bit_sums(joined.starts, joined.hashes, joined.weights)


def fingerprint_of(columns: list[Column]) -> int:
    """As the fingerprint is made: the columns' features merged, their weights added."""
    merged: Column = {}
    for found in columns:
        for value, weight in found.items():
            merged[value] = merged.get(value, 0) + weight
    one = features(merged)
    return int(fingerprint_rows(one.starts, one.hashes, one.weights)[0])


@given(row)
def test_the_signs_of_the_sums_are_the_fingerprint(columns: list[Column]) -> None:
    is_one = sums_of(columns).sum(axis=0) > 0
    assert sum(1 << bit for bit in np.flatnonzero(is_one).tolist()) == fingerprint_of(columns)


@given(row, row)
def test_shares_add_up_to_the_distance(a: list[Column], b: list[Column]) -> None:
    shares = share_differing_bits(sums_of(a), sums_of(b))
    distance = (fingerprint_of(a) ^ fingerprint_of(b)).bit_count()
    assert shares.shape == (COLUMNS,)
    assert np.all(shares >= 0)
    assert np.isclose(shares.sum(), distance)
    assert np.allclose(shares, share_differing_bits(sums_of(b), sums_of(a)))


@given(row, row, st.integers(0, COLUMNS - 1))
def test_a_column_that_is_the_same_in_both_turned_nothing(a: list[Column], b: list[Column], i: int) -> None:
    b[i] = a[i]
    assert share_differing_bits(sums_of(a), sums_of(b))[i] == 0


def test_a_bit_is_shared_out_by_the_push_of_each_column() -> None:
    a, b = np.zeros((3, 64), np.int64), np.zeros((3, 64), np.int64)
    a[:, 0], b[:, 0] = (-4, -1, 2), (2, 1, 1)  # pushed by 6 and 2; the third held back
    a[:, 63], b[:, 63] = (5, 0, 0), (0, 0, -1)  # turned the other way, by 5 and 1
    a[:, 7], b[:, 7] = (9, 0, 0), (1, 0, 0)  # above zero in both
    expected = [6 / 8 + 5 / 6, 2 / 8, 1 / 6]
    assert np.allclose(share_differing_bits(a, b), expected)
