"""Short texts: their characters, their edit distance, and that each pair of similar ones shares a hash."""

import re
import unicodedata
from dataclasses import replace
from functools import cache, partial
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.flow.candidates.common_grams import measure_common_grams
from db_dedup.flow.candidates.minhash import BANDS
from db_dedup.flow.candidates.short_texts import MOST_HASHES, Prefixes, find_short_hashes, make_prefixes
from db_dedup.flow.candidates.sketches import share_enough_each, shares_enough
from db_dedup.flow.compare import edit_distance as distances
from db_dedup.flow.compare import numbers
from db_dedup.flow.compare.measures import least_shared_with_floor, overlap_with_floor
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.characters import SHORT, short_characters
from db_dedup.flow.features.details import CHARACTERS
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.frames import CUT, NO_FRAMES, FrameList
from db_dedup.records.recipe import RecipeColumn
from db_dedup.sample import generate_petitions
from tests.engines.reference import details_of
from tests.flow import reference
from tests.flow.from_python import callable_from_python

edit_distance = callable_from_python(distances.edit_distance)
have_other_numbers = callable_from_python(numbers.have_other_numbers)

TEXT = RecipeColumn("title", "text", 1)
VALUE = RecipeColumn("region", "value", 2)
few_letters = st.text("abc甲😀", min_size=1, max_size=64)


def symbols_of(columns: list[RecipeColumn], *texts: list[str]) -> list[list[int]]:
    starts, values = short_characters(columns, texts)
    return [part.tolist()[1:] for part in np.split(values, starts[1:-1])]


def fingerprinted(texts: list[str], frames: FrameList = NO_FRAMES, **options: object) -> FingerprintedRows:
    watched = watched_table("titles", {"columns": {"title": 1}, "min_features": 1, **options})
    return Fingerprinter(replace(watched.recipe, frames=frames)).fingerprint([[text] for text in texts])


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
        assert (done.sketches.counts.tolist() == [BANDS]) is bool(options)


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
    found = distances.edit_similarities(details.starts, details.values, left, right)
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
        ("تم تحويل مبلغ ٧٤١٦ ريال", "تم تحويل مبلغ ٢٩٠٣ ريال", True),
        ("تم تحويل مبلغ ٧٤١٦ ريال", "تم تحويل مبلغ 7416 ريال", False),
        ("खाते में १६३२ रुपये जमा", "खाते में १६३५ रुपये जमा", True),
        ("ค่าไฟเดือน ๕ บาท", "ค่าไฟเดือน ๙ บาท", True),
    ],
)
def test_numbers_at_the_same_place(one: str, other: str, is_other: bool) -> None:
    done = fingerprinted([one, other])
    assert have_other_numbers(done.details.starts, done.details.values, 0, 1) is is_other


def test_the_digits_of_every_script_are_numbers() -> None:
    """Of the basic plane, as Python's own tables have them."""
    zeros = [point for point in range(ord("0"), 0xFF00) if unicodedata.decimal(chr(point), None) == 0]
    assert len(zeros) > 30
    for zero in zeros:
        rows = [tuple(map(ord, f"a{number}b")) for number in (chr(zero + 9), "8", "9")]
        details = details_of(rows)
        assert have_other_numbers(details.starts, details.values, 0, 1), hex(zero)
        assert not have_other_numbers(details.starts, details.values, 0, 2), hex(zero)


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
        rows = fingerprinted(texts, NO_FRAMES, **options).compared([None] * 3)
        assert Rule(watched.setting).confirm(rows, left, right)[0].tolist() == wanted


# Candidates


@cache
def prefixes(threshold: float) -> Prefixes:
    return make_prefixes(threshold, partial(least_shared_with_floor, 0.0), np.empty(0, np.uint32))


def share_a_hash(one: list[int], other: list[int], threshold: float) -> bool:
    details = details_of([tuple(one), tuple(other)])
    no_grams = np.zeros(3, np.int64), np.empty(0, np.uint64)
    starts, hashes = find_short_hashes(*details.section(CHARACTERS), *no_grams, prefixes(threshold))
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
    sizes = prefixes(threshold)
    assert (sizes.of_edits.sum(axis=0) + sizes.of_measure[: SHORT + 1]).max() <= MOST_HASHES
    assert sizes.of_measure.max() <= MOST_HASHES
    assert prefixes(0.75).of_edits.sum(axis=0).max() <= 13


def test_the_hashes_of_texts_of_each_length() -> None:
    chance = Random(4)
    texts = ["".join(chr(0x4E00 + chance.randrange(5000)) for _ in range(size)) for size in range(3, 160)]
    done = fingerprinted(texts)
    assert done.features.counts.tolist() == [len(text) - 2 for text in texts], "the test needs unlike grams"
    for row, size in enumerate(done.features.counts.tolist()):
        hashes = done.sketches.of(row)
        bands = int(np.count_nonzero(hashes & np.uint64(1) == 0))
        assert bands == (0 if size <= 58 else 16 if size <= 140 else BANDS)
        assert size > 40 or hashes.size <= 24
        assert size > 58 or hashes.size <= MOST_HASHES
    passages = done.sketches.counts - [prefixes(0.75).of_measure[min(58, size)] for size in range(1, 158)]
    assert passages[28:36].min() >= 1, "a text of up to 38 3-grams is found in a longer one"
    assert passages[40:58].min() >= 1


@pytest.mark.parametrize("size", [*range(31, 41), *range(43, 66)])
def test_a_text_inside_a_longer_one_shares_a_hash(size: int) -> None:
    """Texts of 41 and 42 characters have no room for a passage hash beside their prefix."""
    chance = Random(size)
    whole = "".join(chr(0x4E00 + chance.randrange(5000)) for _ in range(300))
    done = fingerprinted([whole, *(whole[first : first + size] for first in range(0, 300 - size, 7))])
    assert all(shares_enough(done.sketches, 0, part) for part in range(1, len(done.sketches.counts)))


texts_of_some_length = st.one_of(
    st.text("abc", min_size=1, max_size=60),
    st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x4F00), min_size=20, max_size=60),
)
ORDERS = ("fixed", "random", "shared ones last", "shared ones first")


@st.composite
def alike_texts(draw: st.DrawFn) -> tuple[str, str]:
    """A text of at most sixty characters, and a part of it with a few edits and something beside it."""
    one = draw(texts_of_some_length)
    first = draw(st.integers(0, len(one) // 2))
    other = one[first : draw(st.integers(min(len(one), first + 1), len(one)))]
    for _ in range(draw(st.integers(0, 5))):
        place = draw(st.integers(0, len(other)))
        new, left_out = draw(st.text("abc甲乙", max_size=2)), draw(st.integers(0, 2))
        other = other[:place] + new + other[place + left_out :]
    return one, (draw(st.text("xyz丙丁", max_size=20)) + other)[:60] or "a"


@given(alike_texts(), st.sampled_from(ORDERS), st.integers(0, 2**32), st.sampled_from([0.57, 0.3, 0.8]))
@settings(max_examples=150)
def test_all_pairs_of_few_grams_that_the_rule_confirms_share_enough_hashes(
    texts: tuple[str, str], order: str, seed: int, threshold: float
) -> None:
    """By brute force, with any list of common grams: in the worst one the shared grams are the last."""
    options: dict[str, Any] = {"segmenter": "chars:2", "threshold": threshold}
    grams = fingerprinted(list(texts), **options).features
    one, other = np.split(grams.hashes, grams.starts[1:-1])
    shared = np.intersect1d(one, other)
    listed = {
        "fixed": one[:0],
        "random": np.random.default_rng(seed).permutation(np.union1d(one, other))[: seed % 60],
        "shared ones last": shared,
        "shared ones first": np.setxor1d(one, other),
    }[order]
    common = (listed >> np.uint64(32)).astype(np.uint32)
    done = fingerprinted(list(texts), FrameList((), common), **options)
    left, right = np.array([0], np.int32), np.array([1], np.int32)
    watched = watched_table("titles", {"columns": {"title": 1}, **options})
    if (
        done.features.counts.max() <= 58
        and Rule(watched.setting).confirm(done.compared([None] * 2), left, right)[0].item()
    ):
        event("confirmed" if done.details.of(0, CHARACTERS).size else "confirmed, not short")
        assert shares_enough(done.sketches, 0, 1)


@pytest.mark.parametrize("order", ["fixed", "shared ones last"])
def test_sets_that_share_as_few_grams_as_the_measure_allows_share_a_hash(order: str) -> None:
    """Two sets of each two sizes, with as many common grams as it needs, in the worst order of all."""
    chance, rows, common = Random(5), [], []
    for m, n in product(range(1, 59), repeat=2):
        shared = next(
            (s for s in range(1, min(m, n) + 1) if overlap_with_floor(float(s), float(m), float(n)) > 0), 0
        )
        if shared:
            grams = [chance.getrandbits(64) for _ in range(m + n - shared)]
            rows += [sorted(grams[:m]), sorted(grams[m - shared :])]
            common += [gram >> 32 for gram in grams[m - shared : m]]
    sizes = prefixes(0.75)
    made = make_prefixes(
        0.75,
        partial(least_shared_with_floor, 0.0),
        np.array(common if order != "fixed" else [], np.uint32),
    )
    starts = np.cumsum([0, *map(len, rows)])
    no_symbols = np.zeros(starts.size, np.int64), np.empty(0, np.uint64)
    found, hashes = find_short_hashes(
        *no_symbols, starts, np.array([gram for row in rows for gram in row], np.uint64), made
    )
    parts = [frozenset(part.tolist()) for part in np.split(hashes, found[1:-1])]
    assert len(parts) > 2_000
    assert all(one & other for one, other in zip(parts[::2], parts[1::2], strict=True))
    assert np.diff(found).tolist() == [sizes.of_measure[len(row)] for row in rows]


def test_values_count_as_grams_of_prefixes() -> None:
    chance = Random(9)
    rows = []
    for _ in range(600):
        text = [chance.randrange(300) for _ in range(chance.randint(10, 50))]
        copy = [symbol for symbol in text if chance.random() > 0.05] or text
        rows += [["".join(chr(0x4E00 + s) for s in own), chance.choice("甲乙丙")] for own in (text, copy)]
    watched = watched_table("t", {"columns": {"title": 1, "region": {"kind": "value"}}, "min_features": 1})
    done = Fingerprinter(watched.recipe).fingerprint(rows)
    left = np.arange(0, len(rows), 2, dtype=np.int32)
    confirmed, _, _ = Rule(watched.setting).confirm(done.compared([None] * len(rows)), left, left + 1)
    assert np.count_nonzero(confirmed) > 200
    assert all(shares_enough(done.sketches, i, i + 1) for i in left[confirmed].tolist())


def test_all_pairs_of_sample_texts_are_found_without_chance() -> None:
    """Sentences of made-up petitions, in the order that their common grams give: against brute force."""
    petitions = generate_petitions(400, seed=3, duplicate_share=0.5).petitions
    sentences = normalise_batch([part for each in petitions for part in re.split(r"[。！？]", each.content)])
    texts = [text for text in dict.fromkeys(sentences) if 3 <= len(text) <= 60][:1200]
    columns = watched_table("t", {"columns": {"title": 1}}).recipe.columns
    common = measure_common_grams(columns, [texts], NO_FRAMES)
    assert common.size > 500
    done = fingerprinted(texts, FrameList((), common))
    left, right = (side.astype(np.int32) for side in np.triu_indices(len(texts), 1))
    watched = watched_table("titles", {"columns": {"title": 1}})
    confirmed, _, _ = Rule(watched.setting).confirm(done.compared([None] * len(texts)), left, right)
    confirmed &= (done.features.counts[left] <= 58) & (done.features.counts[right] <= 58)
    assert np.count_nonzero(confirmed) > 100
    assert share_enough_each(done.sketches, left[confirmed], right[confirmed]).all()


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
