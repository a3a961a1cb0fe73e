"""Short rows with numbers: those that have other numbers are not compared, and no pair is lost."""

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from db_dedup.flow.matching._bitmaps import make_bitmaps
from db_dedup.flow.matching.budget import DEFAULT
from tests.engines.comparisons import count_comparisons
from tests.engines.reference import MatchRule, Row, brute_force, pairs_of, table_of
from tests.flow.reference import other_numbers

RULE = MatchRule(0, "char_overlap", 0.5, 10**9, short_threshold=0.75)

FORMS = ("#楼#单元#室", "门牌#号", "#", "电话#转#", "#月#日发", "无号码的来信", "各位、#、#、请看附件")


def rows_of(chance: Random, count: int) -> list[Row]:
    """Rows of a few forms with a few numbers, some of them edited, or with two numbers at the same place."""
    rows = []
    for digest in range(1, count + 1):
        text = chance.choice(FORMS)
        while "#" in text:
            text = text.replace("#", chance.choice(["1", "2", "12", "二", "十二", "012", "2" * 18]), 1)
        if chance.random() < 0.3:
            place = chance.randrange(len(text))
            text = text[:place] + chance.choice(["", "1", "号", "楼3号"]) + text[place + 1 :]
        symbols = tuple(map(ord, text)) or (ord("1"),)
        features = dict.fromkeys((one << 21 | other for one, other in pairwise((0, *symbols))), 1)
        sketch = frozenset(chance.sample([1, 3, 5], chance.randrange(1, 4)))
        rows.append(Row(chance.getrandbits(64), digest, chance.randrange(2), features, sketch, symbols))
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_no_pair_is_lost(seed: int) -> None:
    rows = rows_of(Random(seed), 100)
    expected = brute_force(rows, RULE)
    found = RULE.match(table_of(rows))
    assert found.group_of.tolist() == expected.group_of
    assert pairs_of(found) == expected.pairs
    assert len(expected.pairs) > 30
    assert len(set(expected.group_of)) > 10


def test_rows_of_one_form_are_compared_only_if_they_have_the_same_numbers() -> None:
    rows, forms = [], []
    for digest in range(1, 61):
        forms.append(form := "号弄"[digest // 18 % 2])
        symbols = tuple(map(ord, f"门牌{digest % 9}{form}{digest % 2}室"))
        rows.append(Row(digest, digest, 0, {1: 1}, frozenset({1}), symbols))
    for (a, b), count in np.ndenumerate(count_comparisons(rows, RULE)):
        if forms[a] == forms[b]:
            assert count == (a < b and rows[a].symbols == rows[b].symbols)


def test_two_rows_with_other_numbers_at_equal_places_are_told_apart() -> None:
    rows = rows_of(Random(0), 300)
    arrays = table_of(rows).arrays(slice(None), np.empty(0, np.int64))
    bitmaps = make_bitmaps(arrays, RULE.rule.numbers, DEFAULT.bitmap_bytes)
    places, values = bitmaps.number_places.tolist(), bitmaps.number_values.tolist()
    said: Counter[tuple[bool, bool]] = Counter()
    for a, one in enumerate(rows):
        for b, other in enumerate(rows[:a]):
            are_apart = places[a] == places[b] and values[a] != values[b]
            said[are_apart, other_numbers(one.symbols, other.symbols)] += 1
    assert said[True, False] == 0
    assert said[True, True] > said[False, True]
