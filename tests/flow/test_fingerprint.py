"""Every bit of a fingerprint is fixed for ever: by the definition, and by values written down here."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from db_dedup.flow.features.counting import TokenHasher
from db_dedup.flow.fingerprints.simhash import fingerprint_rows
from tests.flow.reference import Weights, features_of, simhash

TOP_BIT = 1 << 63

hashes = st.integers(0, 2**64 - 1)
rows = st.dictionaries(hashes, st.integers(1, 2**40), max_size=12)


def fingerprints(table: list[Weights]) -> list[int]:
    found = features_of(table)
    result = fingerprint_rows(found.starts, found.hashes, found.weights)
    assert result.dtype == np.uint64
    values: list[int] = result.tolist()
    return values


@given(st.lists(rows, max_size=5))
@example([{2**64 - 1: 1}, {}, {TOP_BIT: 2, 1: 2}, {TOP_BIT: 3, TOP_BIT | 1: 1, 2: 3}])
@example([{1: 2**24, 2: 1, 4: 2**24 + 1}, {1: 2**53, 2: 2**53 + 1, 3: 1}])
def test_it_is_the_sign_of_the_summed_votes(table: list[Weights]) -> None:
    assert fingerprints(table) == [simhash(row) for row in table]


def test_a_row_without_features_has_no_bit() -> None:
    assert fingerprints([{}, {}]) == [0, 0]
    assert fingerprints([]) == []


@given(hashes, st.integers(1, 1000))
def test_a_single_feature_is_the_fingerprint(value: int, weight: int) -> None:
    assert fingerprints([{value: weight}]) == [value]


@given(hashes, hashes)
def test_a_tie_gives_no_bit(a: int, b: int) -> None:
    assert fingerprints([{a: 5, b: 5}]) == [a & b]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a", 0xB3454265B6DF75E3),
        ("1", 0x811F023A122D0BE1),
        ("é", 0x099E89E5ECBB4CC1),
        ("的", 0xBCB15D1E1785D283),
        ("信访", 0x5B4C7EB64EA9BECB),
        ("petition", 0x1420A787929C106C),
        ("道路扰民", 0xC52C53121ADB4A3D),
        ("噪音扰民问题反映", 0xC406B2E97E4AE6F8),
        ("abcdefghijklmnopqrstuvwxyz", 0x5EAD741CE7AC31BD),
        ("关于某小区夜间施工噪音扰民的投诉", 0xE40EE5B87BA8EF1B),
        ("中华人民共和国信访工作条例实施办法及其他有关规定汇编二〇二四年修订版本", 0x32F4C68A7A173022),
    ],
)
def test_golden_hashes(word: str, expected: int) -> None:
    """One for each way in which CityHash64 reads a length."""
    assert TokenHasher().hash_tokens([word]).tolist() == [expected]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"道路": 1, "噪音": 1, "扰民": 1}, 0xA546C9A022A23F5A),
        ({"小区": 3, "夜间": 1, "施工": 2, "噪音": 2, "扰民": 4}, 0xA74658A062323051),
        ({"petition": 16, "school": 27, "bus": 16, "route": 34}, 0xBC4A93394E1E0166),
        ({"工资": 5, "拖欠": 3, "工地": 2, "农民工": 7, "包工头": 1, "老板": 1}, 0xF5BFAEBE900270AD),
        ({"a": 1, "b": 2, "c": 4, "d": 8, "1": 16}, 0x811F023A122D0BE1),
        ({"信访": 16777216, "条例": 1, "办法": 16777217}, 0x05433DC222B0F3B9),
    ],
)
def test_golden_fingerprints(words: dict[str, int], expected: int) -> None:
    row = {int(TokenHasher().hash_tokens([word])[0]): weight for word, weight in words.items()}
    assert fingerprints([row]) == [expected]
