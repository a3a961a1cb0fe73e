"""What kind of pair two rows are: the compiled form against plain Python, and what the kinds mean."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.engines.embedded.pair_search import oriented
from db_dedup.flow.compare import kinds as compiled
from db_dedup.flow.compare.kinds import swapped_kinds
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.details import CHARACTERS, LONG_GRAMS, PLACES, join_sections
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.order import receipt
from db_dedup.records import Family
from db_dedup.records.calibration import PairSetting
from db_dedup.records.kinds import (
    CONTAINED,
    COPY,
    EDITED,
    KIND_BITS,
    OTHER_PLACE,
    PARTIAL,
    SECOND_IS_PART,
    UNKNOWN,
    PairKind,
)
from db_dedup.store.pairs import StoredPairs
from tests.engines.reference import Row, random_rows, table_of
from tests.flow.from_python import callable_from_python
from tests.flow.reference import kind, names_other_place

kind_of_sets = callable_from_python(compiled.kind_of_sets)
name_other_places = callable_from_python(compiled.name_other_places)

TEXT = (
    "尊敬的领导：我是红星小区的居民，楼下的烧烤店每天晚上营业到凌晨两点，油烟直接排到楼道里，"
    "噪音也很大，孩子无法休息，老人血压升高。我们多次向物业和社区反映，都没有结果。"
)
OTHER = (
    "另外，门口的路灯已经坏了三个月，晚上出行很不安全，前几天还有一位阿姨摔伤了手臂。"
    "停车位也被外来车辆长期占用，业主下班回家只能把车停在很远的地方，希望一并处理。"
)
WATCHED = watched_table("petitions", {"columns": {"content": 1}, "frames": False})


def kind_of(a: str, b: str) -> PairKind:
    done = Fingerprinter(WATCHED.recipe).fingerprint([(a,), (b,)])
    first, second = np.array([0], np.int32), np.array([1], np.int32)
    return PairKind.of(int(Rule(WATCHED.setting).kinds(done.compared([None, None]), first, second)[0]))


@pytest.mark.parametrize("measure", ["word_jaccard", "char_jaccard", "char_overlap", "overlap", "cosine"])
@pytest.mark.parametrize("seed", range(4))
def test_kinds_equal_plain_python(measure: str, seed: int) -> None:
    rows = [row for row in random_rows(Random(seed), 40, with_sketches=True) if row.features]
    rows += [replace(row, features=dict(list(row.features.items())[:5])) for row in rows[:5]]
    table = table_of(rows)
    left, right = np.array(list(combinations(range(len(rows)), 2)), np.int32).T
    found = Rule(PairSetting(3, True, measure, 0.5)).kinds(table, left, right)
    wanted = [
        kind(
            rows[a].features,
            rows[b].features,
            names_other_place=names_other_place(rows[a].places, rows[b].places),
        )
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert found.tolist() == wanted
    assert {value & KIND_BITS for value in wanted} == {COPY, EDITED, CONTAINED, PARTIAL}
    assert any(value & OTHER_PLACE for value in wanted)
    turned = Rule(PairSetting(3, True, measure, 0.5)).kinds(table, right, left)
    assert turned.tolist() == swapped_kinds(found).tolist()


_names = st.frozensets(
    st.builds(
        lambda sort, latin, one, other: sort << 43 | (latin << 42) | one << 21 | other,
        st.integers(0, 2),
        st.booleans(),
        st.integers(1, 4),
        st.integers(1, 4),
    ),
    max_size=6,
)


@given(_names, _names)
def test_places_equal_plain_python(a: frozenset[int], b: frozenset[int]) -> None:
    details = table_of([Row(0, 1, 0, {}, places=a), Row(0, 1, 0, {}, places=b)]).details
    found = name_other_places(details.starts, details.values, 0, 1)
    assert found == names_other_place(a, b)
    assert found == name_other_places(details.starts, details.values, 1, 0)
    assert not name_other_places(details.starts, details.values, 0, 0)


@pytest.mark.parametrize(
    ("shared", "size_a", "size_b", "wanted"),
    [
        (95, 95, 100, COPY),
        (94, 94, 100, EDITED),
        (60, 100, 100, EDITED),
        (59, 100, 100, PARTIAL),
        (60, 75, 100, CONTAINED),
        (59, 75, 100, PARTIAL),
        (61, 76, 100, EDITED),
        (8, 100, 10, CONTAINED | SECOND_IS_PART),
        (7, 10, 100, PARTIAL),
    ],
)
def test_the_limits(shared: int, size_a: int, size_b: int, wanted: int) -> None:
    assert kind_of_sets(shared, size_a, size_b, False, False) == wanted


def test_a_near_equal_text_with_another_place_is_no_copy() -> None:
    assert kind_of_sets(100, 101, 101, False, True) == EDITED | OTHER_PLACE


def test_short_texts_that_their_edit_similarity_confirmed_are_edited() -> None:
    assert kind_of_sets(3, 10, 11, True, False) == EDITED
    assert kind_of_sets(3, 10, 11, False, False) == PARTIAL


@pytest.mark.parametrize(("section", "wanted"), [(CHARACTERS, EDITED), (LONG_GRAMS, COPY), (PLACES, PARTIAL)])
def test_the_sections_of_a_measure_by_length(section: int, wanted: int) -> None:
    """Long grams are compared in place of 3-grams; a section of characters marks a short text."""
    table = table_of([Row(0, 1, 0, {1: 1, 2: 1}), Row(0, 2, 0, {2: 1, 3: 1})])
    values = np.tile(np.arange(7, 127, dtype=np.uint64), 2)
    details = join_sections(2, {section: (np.array([0, 120, 240]), values)})
    # The rows of a table under test have their details in another order.
    table = replace(table, details=details)
    setting = PairSetting(3, True, "char_overlap", 0.5, short_threshold=0.75, long_grams=True)
    first, second = np.array([0], np.int32), np.array([1], np.int32)
    by_length = Rule(replace(setting, similarity="char_overlap")).kinds(table, first, second)
    assert by_length.tolist() == [wanted]
    others = Rule(replace(setting, similarity="char_jaccard")).kinds(table, first, second)
    assert others.tolist() == [PARTIAL]


def test_without_a_measure_a_pair_has_no_kind() -> None:
    table = table_of(random_rows(Random(2), 10))
    left, right = np.array([0, 1], np.int32), np.array([2, 3], np.int32)
    assert Rule(PairSetting(3, True, "none", 0.0)).kinds(table, left, right).tolist() == [UNKNOWN] * 2


def test_what_the_kinds_mean() -> None:
    assert kind_of(TEXT, TEXT.replace("，", " ，")).kind == "copy"
    assert kind_of(TEXT, TEXT.replace("凌晨两点", "深夜十二点").replace("孩子", "小孩")).kind == "edited"
    assert kind_of(TEXT, TEXT + OTHER) == PairKind("contained", 0, other_place=False)
    assert kind_of(TEXT + OTHER, OTHER) == PairKind("contained", 1, other_place=False)
    assert kind_of(TEXT + OTHER[:50], OTHER[40:] + TEXT[:60]).kind == "partial"


def test_the_same_letter_from_another_place() -> None:
    other = TEXT.replace("红星小区", "锦湖小区")
    assert kind_of(TEXT, other) == PairKind("edited", None, other_place=True)
    # One wrong ideograph in the name is a slip, and a text that names both places may be about either.
    assert kind_of(TEXT, TEXT.replace("红星小区", "红新小区")).other_place is False
    assert kind_of(TEXT, TEXT + "锦湖小区也是这样。").other_place is False
    assert kind_of("the same letter in english words", "the same letter in english word").other_place is False


def test_a_part_of_a_contained_pair_has_a_key() -> None:
    assert PairKind.of(CONTAINED).part_of("a", "b") == "a"
    assert PairKind.of(CONTAINED | SECOND_IS_PART | OTHER_PLACE).part_of("a", "b") == "b"
    assert PairKind.of(EDITED).part_of("a", "b") is None
    assert PairKind.of(UNKNOWN) == PairKind(None, None, None)


def test_a_contained_pair_that_is_turned_names_the_same_row() -> None:
    received = {i: receipt(order, str(i), [Family.NUMBER]) for i, order in ((1, "b"), (2, "a"), (3, "c"))}
    kinds = np.array([CONTAINED, CONTAINED | SECOND_IS_PART, EDITED | OTHER_PLACE], np.uint8)
    pairs = StoredPairs(np.array([1, 2, 1]), np.array([2, 3, 2]), np.zeros(3, np.int16), np.ones(3), kinds)
    turned = oriented(pairs, received.__getitem__)
    assert (turned.id_a.tolist(), turned.id_b.tolist()) == ([2, 2, 2], [1, 3, 1])
    assert turned.kinds.tolist() == [CONTAINED | SECOND_IS_PART, CONTAINED | SECOND_IS_PART, kinds[2]]
