"""Short texts: their characters, their edit distance, and that each pair of similar ones shares a hash."""

from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.flow.candidates._bands import BANDS
from db_dedup.flow.candidates.short_texts import MOST_HASHES, find_short_hashes, prefix_sizes
from db_dedup.flow.candidates.sketches import shares_enough
from db_dedup.flow.compare.edit_distance import edit_distance, edit_similarities
from db_dedup.flow.compare.numbers import have_other_numbers
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.characters import SHORT, short_characters
from db_dedup.flow.features.details import CHARACTERS
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.records.frames import CUT
from db_dedup.records.recipe import RecipeColumn
from tests.engines.reference import details_of
from tests.flow import reference

TEXT = RecipeColumn("title", "text", 1)
VALUE = RecipeColumn("region", "value", 2)
few_letters = st.text("abc甲😀", min_size=1, max_size=64)


def symbols_of(columns: list[RecipeColumn], *texts: list[str]) -> list[list[int]]:
    starts, values = short_characters(columns, texts)
    return [part.tolist()[1:] for part in np.split(values, starts[1:-1])]


def fingerprinted(texts: list[str], **options: object) -> FingerprintedRows:
    watched = watched_table("titles", {"columns": {"title": 1}, "min_features": 1, **options})
    return Fingerprinter(watched.recipe).fingerprint([[text] for text in texts])


# Characters


def test_white_space_does_not_count() -> None:
    assert symbols_of([TEXT], ["北京 a b", "", "x" * 31, "y" * 30 + " z"]) == [
        [*map(ord, "北京ab")],
        [],
        [],
        [],
    ]
    assert len(symbols_of([TEXT], [" ".join("x" * SHORT)])[0]) == SHORT


def test_a_value_is_one_symbol() -> None:
    rows = symbols_of([TEXT, VALUE], ["a", "", "a" * 30], ["朝阳区", "海淀区", "海淀区"])
    assert [len(row) for row in rows] == [2, 1, 0]
    assert rows[0][0] == ord("a")
    assert rows[0][1] != rows[1][0]
    assert min(rows[0][1], rows[1][0]) >= 2**63
    assert symbols_of([TEXT, VALUE], ["a"], [""]) == [[ord("a")]]


def test_columns_come_one_after_the_other() -> None:
    other = RecipeColumn("content", "text", 1)
    assert symbols_of([TEXT, other], ["ab", "x" * 20], ["c", "y" * 11]) == [[*map(ord, "abc")], []]


def test_a_frame_that_was_cut_out_keeps_its_two_sides_apart() -> None:
    assert symbols_of([TEXT], [f"北京{CUT}a b"]) == [[*map(ord, f"北京{CUT}ab")]]


def test_only_where_the_rule_compares_short_texts() -> None:
    for options in ({}, {"short_threshold": 0.0}, {"similarity": "word_jaccard"}):
        done = fingerprinted(["北京 男篮"], **options)
        assert (done.details.of(0, CHARACTERS).size > 0) == (not options)
        assert done.sketches.counts.tolist() != [BANDS] or options


# Edit distance


@given(few_letters, few_letters)
def test_it_is_the_edit_distance(one: str, other: str) -> None:
    values = np.array([*map(ord, one + other)], np.uint64)
    found = edit_distance(values, 0, len(one), len(one), values.size)
    assert found == reference.edit_distance(one, other)


@given(st.lists(st.lists(st.integers(0, 5), max_size=8).map(tuple), min_size=2, max_size=5))
def test_the_similarity_of_short_rows(rows: list[tuple[int, ...]]) -> None:
    left, right = np.array(list(product(range(len(rows)), repeat=2)), np.int32).T
    details = details_of(rows)
    found = edit_similarities(details.starts, details.values, left, right)
    for a, b, score in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
        if rows[a] and rows[b]:
            assert score == reference.edit_similarity(rows[a], rows[b])
        else:
            assert np.isnan(score)


# Numbers


@given(st.text("12三十ab", min_size=1, max_size=12), st.text("12三十ab", min_size=1, max_size=12))
def test_other_numbers_are_those_of_plain_python(one: str, other: str) -> None:
    details = details_of([tuple(map(ord, one)), tuple(map(ord, other))])
    wanted = reference.other_numbers([*map(ord, one)], [*map(ord, other)])
    assert have_other_numbers(details.starts, details.values, 0, 1) == wanted
    assert have_other_numbers(details.starts, details.values, 1, 0) == wanted


@pytest.mark.parametrize(
    ("one", "other", "is_other"),
    [
        ("本法自2019年1月1日起施行", "本法自2019年10月1日起施行", True),
        ("第五集讲了什么", "第十二集讲了什么", True),
        ("3栋漏水", "5栋漏水", True),
        ("新增20", "新增4", True),
        ("新增20例", "新增例", False),
        ("新增20例", "新增2x0例", False),
        ("第1集第2集", "第1集", False),
        ("第1集第2集", "第1集第3集", True),
        ("2月停电", "停电2天", False),
        ("路灯坏了", "路灯不亮", False),
        ("幸福小区3号楼电梯", "幸福小区三号楼电梯", False),
        ("幸福小区3号楼电梯", "幸福小区十三号楼电梯", True),
        ("第一百零五条", "第105条", False),
        ("二〇一九年", "2019年", False),
        ("共两千三百万元", "共2300万元", False),
        ("共一亿二千万元", "共120000000元", False),
        ("共一亿二千万元", "共一亿三千万元", True),
    ],
)
def test_numbers_at_the_same_place(one: str, other: str, is_other: bool) -> None:
    done = fingerprinted([one, other])
    assert have_other_numbers(done.details.starts, done.details.values, 0, 1) is is_other


def test_short_texts_with_other_numbers_are_no_duplicates_by_any_measure() -> None:
    texts = [
        "关于2019年春季学期开学时间的通知",
        "关于2018年春季学期开学时间的通知",
        "关于今年春季学期开学时间的通知",
    ]
    left, right = np.array([[0, 1], [0, 2], [1, 2]], np.int32).T
    for options, wanted in (
        ({}, [False, True, True]),
        ({"short_threshold": 0.9}, [False, True, True]),
        ({"short_threshold": 0.0}, [True, True, True]),
    ):
        watched = watched_table("titles", {"columns": {"title": 1}, **options})
        rows = fingerprinted(texts, **options).compared([None] * 3)
        assert Rule(watched.setting).confirm(rows, left, right)[0].tolist() == wanted


# Candidates


def share_a_hash(one: list[int], other: list[int], threshold: float) -> bool:
    details = details_of([tuple(one), tuple(other)])
    no_grams = np.zeros(3, np.int64), np.empty(0, np.uint64)
    starts, hashes = find_short_hashes(*details.section(CHARACTERS), *no_grams, threshold)
    return bool(np.intersect1d(hashes[: starts[1]], hashes[starts[1] :]).size)


def edited(chance: Random, text: list[int], edits: int, letters: int) -> list[int]:
    text = list(text)
    for _ in range(edits):
        place = chance.randrange(len(text) + 1)
        text[place : place + chance.randrange(2)] = [chance.randrange(letters)] * chance.randrange(2)
    return text[:SHORT]


@pytest.mark.parametrize("threshold", [0.75, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.2])
def test_similar_short_rows_share_a_hash(threshold: float) -> None:
    chance = Random(int(threshold * 100))
    alike = 0
    for _ in range(4000):
        letters = chance.choice([2, 4, 1000])
        one = [chance.randrange(letters) for _ in range(chance.randint(1, SHORT))]
        other = edited(chance, one, chance.randint(0, 2 + len(one) // 3), letters)
        if other and reference.edit_similarity(one, other) >= threshold:
            alike += 1
            assert share_a_hash(one, other, threshold)
    assert alike > 400


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=12)
)
def test_all_similar_rows_of_few_letters_share_a_hash(one: list[int], other: list[int]) -> None:
    if reference.edit_similarity(one, other) >= 0.75:
        assert share_a_hash(one, other, 0.75)


@pytest.mark.parametrize("threshold", [0.75, 0.05, 0.3, 0.5, 0.65, 0.7, 0.85, 0.95, 1.0])
def test_one_hash_in_common_is_enough_for_short_texts(threshold: float) -> None:
    assert prefix_sizes(threshold).sum(axis=0).max() <= MOST_HASHES
    assert prefix_sizes(0.75).sum(axis=0).max() <= 24


def test_short_texts_have_neither_bands_nor_passages() -> None:
    done = fingerprinted(
        ["路灯坏了三个月无人修理", "路灯坏了三个月无人修理请尽快派人处理以免发生事故影响居民夜间出行"]
    )
    assert done.sketches.counts[0] <= 9
    assert not np.any(done.sketches.of(0) & np.uint64(1) == 0)
    assert np.count_nonzero(done.sketches.of(1) & np.uint64(1) == 0) == BANDS - 4
    assert done.sketches.counts[1] <= BANDS + 8


@pytest.mark.parametrize("seed", range(5))
def test_short_and_longer_texts_that_are_alike_share_a_hash(seed: int) -> None:
    chance = Random(seed)
    pairs = []
    for _ in range(100):
        longer = "".join(chr(0x4E00 + chance.randrange(2000)) for _ in range(chance.randint(31, 60)))
        part = max(len(longer) // 2, chance.randint(20, 28))
        first = chance.randrange(len(longer) - part + 1)
        pairs += [longer[first : first + part], longer]
    done = fingerprinted(pairs)
    shares = [shares_enough(done.sketches, i, i + 1) for i in range(0, len(pairs), 2)]
    assert sum(shares) >= 97


@pytest.mark.parametrize("letters", [3, 8, 1000])
def test_all_short_rows_that_the_rule_confirms_share_enough_hashes(letters: int) -> None:
    chance = Random(letters)
    texts: list[str] = []
    for _ in range(1500):
        one = [chance.randrange(letters) for _ in range(chance.randint(3, SHORT))]
        part = one[: len(one) - chance.randint(0, len(one) * 6 // 10)]
        other = edited(chance, chance.choice([one, part, part]), chance.randint(0, 3), letters) or one
        texts += ["".join(chr(0x4E00 + symbol) for symbol in row) for row in (one, other)]
    done = fingerprinted(texts)
    left = np.arange(0, len(texts), 2, dtype=np.int32)
    watched = watched_table("titles", {"columns": {"title": 1}})
    confirmed, _, _ = Rule(watched.setting).confirm(done.compared([None] * len(texts)), left, left + 1)
    assert 500 < np.count_nonzero(confirmed) < left.size
    assert all(shares_enough(done.sketches, i, i + 1) for i in left[confirmed].tolist())
    assert done.sketches.counts.max() <= 30
