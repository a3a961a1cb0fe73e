"""From texts to bits: what a recipe makes of a row is written down here and may never change."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest

from db_dedup.config import watched_table
from db_dedup.errors import ConfigError
from db_dedup.flow.features.counting import TokenHasher, hash_values
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records.recipe import RECIPE_VERSION

COLUMNS: Mapping[str, Any] = {"title": 2, "content": {"kind": "text"}, "region": {"kind": "value"}}
PETITIONS = [
    (
        "夜间施工噪音扰民",
        "您好，我是锦绣花园小区的业主。工地每天凌晨两点还在打桩，孩子无法入睡，请有关部门尽快处理！",
        "城东区",
    ),
    (
        "拖欠农民工工资",
        "我们共有23名工人，自2019年3月起在滨江路项目干活，至今拖欠工资180000元，电话138****5678。",
        "滨江区",
    ),
    ("关于公交线路的建议", "建议12路公交车延长到实验中学，现在学生每天要走3.5公里，冬天很不方便。", ""),
    ("小區停車難", "小區內停車位不足，物業亂收費，業主多次反映沒有結果。", "城西区"),
    (
        "Street light broken",
        "The street light on Long Road has been out since May; it is dark and NOT safe.",
        "城东区",
    ),
    (
        "ＵＲＬ与掩码",
        "详见 https://example.com/a/b?c=1 ，举报人张XX，身份证*********，哈哈哈哈哈哈",
        "城东区",
    ),
    ("路灯", "不亮", ""),
    ("", " \r\n ", ""),
]


def fingerprinted(rows: Sequence[tuple[str, ...]], **options: Any) -> FingerprintedRows:
    columns = options.pop("columns", COLUMNS)
    by_words = {"similarity": "word_jaccard", "sketches": False}
    settings = {"columns": columns, **by_words, **options}
    return Fingerprinter(watched_table("petitions", settings).recipe).fingerprint(rows)


def words_of(found: FingerprintedRows, row: int = 0) -> set[int]:
    starts = found.features.starts
    return set(found.features.hashes[starts[row] : starts[row + 1]].tolist())


def hashes_of(*words: str) -> set[int]:
    return set(TokenHasher().hash_tokens(words).tolist())


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        (
            "strict",
            [
                0x94647C2188623093,
                0xA60F0CC710033BA9,
                0x8C224B14719A173A,
                0xA20252802503A25E,
                0xA88417380928EC8F,
                0x9AC5EA85E92BEB85,
            ],
        ),
        (
            "balanced",
            [
                0xB5245D21896E3083,
                0xB60F0CC710233BA9,
                0x8C335B1631DA563A,
                0xA2025B802703A25E,
                0x28361F291928FDAE,
                0x9AE4E5856A37EB91,
            ],
        ),
    ],
)
def test_golden_fingerprints(preset: str, expected: list[int]) -> None:
    found = fingerprinted(PETITIONS, preset=preset)
    assert found.fingerprints.dtype == np.uint64
    assert found.fingerprints[found.has_fingerprint].tolist() == expected
    assert found.has_fingerprint.tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize(
    ("similarity", "counts", "expected"),
    [
        ("word_jaccard", [28, 29, 26, 25, 32, 25, 24, 24], "d4acc62c08335cc7"),
        # The sixth and the seventh row are short; the first four have eight hashes of 3-grams and 20 bands.
        ("char_overlap", [32, 33, 30, 29, 32, 14, 5, 20], "fff21925f844176e"),
    ],
)
def test_golden_sketches(similarity: str, counts: list[int], expected: str) -> None:
    """Where a new candidate generator or a changed one gives other sketches, RECIPE_VERSION is raised."""
    found = fingerprinted(PETITIONS, similarity=similarity, sketches=True).sketches
    digest = hashlib.sha256(found.values.astype("<u8").tobytes()).hexdigest()[:16]
    assert (RECIPE_VERSION, found.counts.tolist(), digest) == (4, counts, expected)


def test_golden_digests() -> None:
    """They decide which rows are copies, and whether a stored row has changed."""
    assert [digest.hex() for digest in fingerprinted(PETITIONS).digests] == [
        "577bbee644e1c440f4cfab941dfc6c43",
        "bdaac1965d6b1ad501b75fd4d189ab67",
        "80e9f24a02ef992b75c1b20de3acc5ba",
        "2f4225009a6ed77c489c19c802818fee",
        "045f4bacf5e175c2b6bfd55307535555",
        "de4da6c0be0469e9fbc5095064956b97",
        "7314733b735aa54995c8b3286ff361e0",
        NO_FEATURES_DIGEST.hex(),
    ]


@pytest.mark.parametrize("similarity", ["word_jaccard", "char_jaccard"])
def test_a_row_is_the_same_in_any_company(similarity: str) -> None:
    """More rows than are cut at a time, in another process's order."""
    fingerprinter = Fingerprinter(watched_table("t", {"columns": COLUMNS, "similarity": similarity}).recipe)
    rows = [
        (f"{title}{i % 97}", content, region) for i, (title, content, region) in enumerate(PETITIONS * 90)
    ]
    together = fingerprinter.fingerprint(rows)
    for i in range(0, len(rows), 71):
        alone = fingerprinter.fingerprint([rows[i]])
        assert alone.fingerprints[0] == together.fingerprints[i]
        assert alone.has_fingerprint[0] == together.has_fingerprint[i]
        assert alone.digests[0] == together.digests[i]
        assert words_of(alone) == words_of(together, i)


def test_no_rows() -> None:
    found = fingerprinted([])
    assert found.fingerprints.size == found.has_fingerprint.size == found.features.counts.size == 0
    assert found.digests == []


def test_rows_that_read_the_same_are_copies() -> None:
    found = fingerprinted(
        [("ＡＢＣ公司　投诉", "电话***", "城东"), ("abc公司 \r\n投诉", "电话********", "城东 ")]
    )
    assert found.digests[0] == found.digests[1]
    assert found.fingerprints[0] == found.fingerprints[1]


@pytest.mark.parametrize(
    "other", [("甲乙", "丙", "丁"), ("甲", "乙丙", "丁"), ("甲", "乙", "丙丁"), ("甲", "丙", "乙")]
)
def test_the_same_words_in_other_columns_are_no_copy(other: tuple[str, ...]) -> None:
    one, same, different = fingerprinted([("甲", "乙", "丙"), ("甲", "乙", "丙"), other]).digests
    assert one == same != different


def test_copies_agree_in_what_duplicates_must_agree_in() -> None:
    fingerprinter = Fingerprinter(watched_table("t", {"columns": {"a": 1}, "within": "b"}).recipe)
    found = fingerprinter.fingerprint([("路灯不亮",)] * 4 + [("。",)] * 2, ["1", "2", "1", None, "1", "1"])
    one, two, again, none, *silent = found.digests
    assert one == again
    assert len({one, two, none}) == 3
    assert silent == [NO_FEATURES_DIGEST] * 2
    assert len(set(found.fingerprints[:4].tolist())) == 1


@pytest.mark.parametrize(
    ("min_features", "expected"), [(1, [True, True]), (3, [True, False]), (4, [False, False])]
)
def test_too_little_text_is_not_judged(min_features: int, expected: list[bool]) -> None:
    rows = [("路灯 不亮 很久",), ("路灯 不亮 路灯",)]
    found = fingerprinted(rows, columns={"a": 1}, segmenter="words", min_features=min_features)
    assert found.has_fingerprint.tolist() == expected
    assert NO_FEATURES_DIGEST not in found.digests, "but each may have a copy"


def test_a_value_is_one_feature_with_its_column() -> None:
    columns = {"region": {"kind": "value"}, "phone": {"kind": "value", "weight": 7}}
    found = fingerprinted([("北京市 海淀区", "@1380000"), ("", "")], columns=columns, normaliser="tweet")
    expected = {
        int(hash_values(*each)[0]) for each in (("region", ["北京市 海淀区"]), ("phone", ["@1380000"]))
    }
    assert words_of(found) == expected
    assert sorted(found.features.weights.tolist()) == [2, 7]
    assert words_of(found, 1) == set()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://office.example/1", "https://office.example/2"),
        ("www.office.example/a", "www.office.example/b"),
        ("138****5678", "138*****5678"),
        ("XX市", "XXXX市"),
        ("aaaa", "aaaaa"),
    ],
)
@pytest.mark.parametrize("similarity", ["word_jaccard", "char_jaccard"])
def test_values_keep_their_links_and_masks(one: str, other: str, similarity: str) -> None:
    columns = {"body": 1, "link": {"kind": "value"}}
    found = fingerprinted([("路灯不亮", one), ("路灯不亮", other)], columns=columns, similarity=similarity)
    assert found.digests[0] != found.digests[1]
    links = [words_of(found, row) - words_of(found, 1 - row) for row in (0, 1)]
    assert [len(link) for link in links] == [1, 1]


def test_values_are_folded() -> None:
    columns = {"body": 1, "link": {"kind": "value"}}
    found = fingerprinted([("路灯", "ＡＢＣ　\t**** 1"), ("路灯", "abc **** １ ")], columns=columns)
    assert found.digests[0] == found.digests[1] != NO_FEATURES_DIGEST
    assert words_of(found) == words_of(found, 1)


def test_golden_values() -> None:
    columns = {"content": {"kind": "text"}, "link": {"kind": "value"}}
    rows = [("详见 https://example.com/a", "https://example.com/a"), ("电话138****5678", "138****5678")]
    found = fingerprinted(rows, columns=columns, min_features=1)
    assert [digest.hex() for digest in found.digests] == [
        "88d207c50081a64aded3cb86033e88bc",
        "4e93a55cf99fab786950c990823b28ee",
    ]
    assert found.fingerprints.tolist() == [0x0784FD2B5EC17C91, 0x12A48A8A5A8D3A71]


def test_a_text_is_stripped_as_a_tweet_where_asked() -> None:
    rows = [("RT @name: Lights are out",), ("lights are out",)]
    assert len(set(fingerprinted(rows, columns={"a": 1}).digests)) == 2
    assert len(set(fingerprinted(rows, columns={"a": 1}, normaliser="tweet").digests)) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"stop_words": "keep"}, ("the", "路灯", "的", "led", "灯泡")),
        ({"stop_words": "drop"}, ("路灯", "led", "灯泡")),
        ({"stop_word_list": ["ＬＥＤ", "灯泡"]}, ("the", "路灯", "的")),
        ({"stop_word_list": [], "stop_words": "drop"}, ("the", "路灯", "的", "led", "灯泡")),
    ],
)
def test_stop_words(options: dict[str, Any], expected: tuple[str, ...]) -> None:
    found = fingerprinted([("The 路灯 的 LED 灯泡。",)], columns={"a": 1}, segmenter="words", **options)
    assert words_of(found) == hashes_of(*expected)


def test_user_words_are_read_as_the_texts_are() -> None:
    found = fingerprinted([("举报ABC锦绣花园",)], columns={"a": 1}, user_words=["ＡＢＣ锦绣花园 100000"])
    assert words_of(found) == hashes_of("举报", "abc锦绣花园")


def test_character_runs_are_compared_and_words_are_fingerprinted() -> None:
    rows, columns = [("夜间施工噪音", "城东")], {"a": 3, "b": {"kind": "value"}}
    by_words = fingerprinted(rows, columns=columns)
    by_characters = fingerprinted(rows, columns=columns, similarity="char_jaccard")
    region = int(hash_values("b", ["城东"])[0])
    grams = set(hash_grams(["夜间施工噪音"])[:-1].tolist())
    assert len(grams) == 4
    assert words_of(by_characters) == grams | {region}
    assert words_of(by_words) == hashes_of("夜间", "施工", "噪音") | {region}
    assert by_characters.fingerprints.tolist() == by_words.fingerprints.tolist()
    assert by_characters.digests == by_words.digests


def test_lone_surrogates_do_no_harm() -> None:
    found = fingerprinted(
        [("\ud800路灯\udfff", "\ud83d", "\udc00"), ("\ud800路灯\udfff", "\ud83d", "\udc00")]
    )
    assert found.digests[0] == found.digests[1] != NO_FEATURES_DIGEST


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"segmenter": "spaces"}, "unknown segmenter 'spaces'"),
        ({"segmenter": "words", "user_words": ["路灯"]}, "no dict"),
    ],
)
def test_a_segmenter_that_cannot_be_had_is_an_error_of_the_settings(
    options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ConfigError, match=fault):
        fingerprinted([], **options)


@pytest.mark.parametrize("similarity", ["char_overlap", "word_jaccard"])
def test_a_known_row_compares_as_if_it_were_new(similarity: str) -> None:
    settings = {"columns": COLUMNS, "similarity": similarity, "sketches": True}
    fingerprinter = Fingerprinter(watched_table("petitions", settings).recipe)
    anew = fingerprinter.fingerprint(PETITIONS)
    known = [*anew.digests[:4], *(len(PETITIONS) - 4) * [None]]
    again = fingerprinter.fingerprint(PETITIONS, None, known, compares_known=True)
    assert again.digests == anew.digests
    for part in ("starts", "hashes", "weights"):
        np.testing.assert_array_equal(getattr(again.features, part), getattr(anew.features, part))
    np.testing.assert_array_equal(again.sketches.values, anew.sketches.values)
    np.testing.assert_array_equal(again.fingerprints[4:], anew.fingerprints[4:])
    assert not again.is_known.any()


def test_a_known_row_is_not_segmented_to_compare_runs_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"columns": {"content": 1}, "similarity": "char_overlap"}
    fingerprinter = Fingerprinter(watched_table("petitions", settings).recipe)
    rows = [(petition[1],) for petition in PETITIONS[:3]]
    known = fingerprinter.fingerprint(rows).digests
    segmenter = fingerprinter._segmenter
    cut_batch = segmenter.cut_batch
    cut: list[list[str]] = []

    def note(texts: list[str]) -> list[str]:
        cut.append(texts)
        return cut_batch(texts)

    monkeypatch.setattr(segmenter, "cut_batch", note)
    fingerprinter.fingerprint(rows, None, known, compares_known=True)
    assert not any(chain.from_iterable(cut))
