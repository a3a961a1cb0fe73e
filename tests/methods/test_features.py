"""Features: values worked by hand, a second implementation of TextRank, and texts of few words."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db_dedup.errors import ConfigError
from db_dedup.methods import (
    FEATURES,
    Corpus,
    bkdr,
    cityhash64,
    cut_corpus,
    feature_codes,
    frequency,
    relative_frequency,
    shingles,
    simhash64,
    strongest,
    text_rank,
    tf_idf,
    unweighted,
)
from db_dedup.methods.features import _MARKS, UNIT
from tests.lengths import LONG, NOT_THE_SQUARE
from tests.methods.corpora import corpus, of_tokens, rows_of, token_lists


def hashed(**weights: float) -> dict[int, int]:
    """Features by their words."""
    return {int(cityhash64([word])[0]): round(weight) for word, weight in weights.items()}


def units(**weights: float) -> dict[int, int]:
    return hashed(**{word: weight * UNIT for word, weight in weights.items()})


def test_words_as_a_set_and_by_frequency() -> None:
    some = corpus("施工 噪音 施工", "", "噪音")
    assert rows_of(unweighted(some)) == [hashed(施工=1, 噪音=1), {}, hashed(噪音=1)]
    assert rows_of(frequency(some)) == [hashed(施工=2, 噪音=1), {}, hashed(噪音=1)]
    third = round(UNIT / 3)
    assert rows_of(relative_frequency(some)) == [hashed(施工=2 * third, 噪音=third), {}, units(噪音=1)]


def test_tf_idf_by_hand() -> None:
    """Of four texts one has 公交, two have 施工, and all have 扰民."""
    some = corpus("施工 施工 扰民", "施工 扰民", "扰民", "公交 扰民 扰民 扰民")
    assert rows_of(tf_idf(some)) == [
        units(施工=2 / 3 * math.log(2)),
        units(施工=1 / 2 * math.log(2)),
        {},
        units(公交=1 / 4 * math.log(4)),
    ]


def test_tf_idf_needs_a_corpus() -> None:
    with pytest.raises(ConfigError, match="TF-IDF needs a corpus"):
        tf_idf(corpus("施工 扰民"))
    assert rows_of(tf_idf(corpus("施工", "施工"))) == [{}, {}]


def test_text_rank_by_hand() -> None:
    """A path of three words, b in its middle: r(b) = .15 + .85 * 2 * r(a), r(a) = .15 + .85 * r(b) / 2."""
    middle = (0.15 + 0.85 * 2 * 0.15) / (1 - 0.85**2)
    side = 0.15 + 0.85 * middle / 2
    (row,) = rows_of(text_rank(corpus("a b c"), window=2))
    expected = units(a=side, b=middle, c=side)
    assert row.keys() == expected.keys()
    assert list(row.values()) == pytest.approx([expected[h] for h in row], rel=1e-6)


def test_text_rank_of_little_text() -> None:
    assert rows_of(text_rank(corpus("a", "", "a a a"))) == [units(a=0.15), {}, units(a=0.15)]


@given(token_lists)
def test_text_rank_solves_its_equations(tokens: list[list[str]]) -> None:
    ranked = rows_of(text_rank(of_tokens(tokens)))
    for row, own in zip(ranked, tokens, strict=True):
        words = sorted(set(own))
        edges = np.zeros((len(words), len(words)))
        for i, word in enumerate(own):
            for other in own[i + 1 : i + 5]:
                if other != word:
                    edges[words.index(word), words.index(other)] += 1
                    edges[words.index(other), words.index(word)] += 1
        flow = edges / np.maximum(edges.sum(axis=0), 1)
        solved = np.linalg.solve(np.eye(len(words)) - 0.85 * flow, np.full(len(words), 0.15))
        expected = dict(zip(cityhash64(words).tolist(), solved * UNIT, strict=True))
        assert row == pytest.approx(expected, rel=1e-6)


def test_feature_codes_by_hand() -> None:
    text = "尊敬的领导：您好！！夜间 施工，噪音扰民。\n（请）速办"
    codes = [
        ("尊敬的领导", "您好夜间施"),
        ("的领导您好", "夜间施工噪"),
        ("好夜间施工", "噪音扰民"),
        ("工噪音扰民", ""),
        ("", "请速办"),
        ("请", "速办"),
    ]
    expected = cityhash64([f"{before}\x1f{after}" for before, after in codes]).tolist()
    assert rows_of(feature_codes(Corpus([text], [[]]))) == [dict.fromkeys(expected, 1)]


@given(st.text("甲乙ab1。，!_ \u0301", max_size=40), st.integers(1, 6))
def test_feature_codes_are_the_letters_around_each_mark(line: str, length: int) -> None:
    expected = set()
    for mark in _MARKS.finditer(line):
        before, after = (
            "".join(filter(str.isalnum, part)) for part in (line[: mark.start()], line[mark.end() :])
        )
        if before or after:
            expected.add(f"{before[-length:]}\x1f{after[:length]}")
    hashes = cityhash64(sorted(expected)).tolist()
    assert rows_of(feature_codes(Corpus([line], [[]]), length=length)) == [dict.fromkeys(hashes, 1)]


@NOT_THE_SQUARE
def test_feature_codes_take_linear_time() -> None:
    assert len(rows_of(feature_codes(Corpus(["甲乙。" * LONG], [[]])))[0]) < 10


def test_feature_codes_of_texts_without_marks() -> None:
    assert rows_of(feature_codes(corpus("没有 标点", "", "。", "a_b"))) == [
        {},
        {},
        {},
        hashed(**{"a\x1fb": 1}),
    ]


def test_shingles_by_hand() -> None:
    make = shingles(2)
    found = rows_of(make(corpus("a b a b", "a", ""), cityhash64))
    assert found == [hashed(**{"a\x1fb": 2, "b\x1fa": 1}), hashed(a=1), {}]


@given(token_lists)
def test_shares_change_no_fingerprint(tokens: list[list[str]]) -> None:
    """Weights that cancel each other still do after rounding."""
    some = of_tokens(tokens)
    assert (simhash64(relative_frequency(some)) == simhash64(frequency(some))).all()


def test_the_strongest_by_hand() -> None:
    make = strongest(frequency, 2)
    tie = min("bc", key=lambda word: int(cityhash64([word])[0]))
    found = rows_of(make(corpus("a a a b b c", "b a a a c", "a", ""), cityhash64))
    assert found == [hashed(a=3, b=2), hashed(**{"a": 3, tie: 1}), hashed(a=1), {}]


@given(token_lists)
def test_a_text_has_a_shingle_for_each_place(tokens: list[list[str]]) -> None:
    for words in (1, 2, 5):
        found = rows_of(shingles(words)(of_tokens(tokens), cityhash64))
        expected = [max(1, len(own) - words + 1) if own else 0 for own in tokens]
        assert [sum(row.values()) for row in found] == expected


@pytest.mark.parametrize("name", FEATURES)
@settings(max_examples=25)  # of each of many
@given(tokens=token_lists)
def test_rows_are_as_the_flow_has_them(name: str, tokens: list[list[str]]) -> None:
    features = FEATURES[name].load()(of_tokens(tokens), bkdr)
    assert features.starts.size == len(tokens) + 1
    assert (features.weights > 0).all()
    for begin, end in zip(features.starts[:-1], features.starts[1:], strict=True):
        assert (np.diff(features.hashes[begin:end].astype(object)) > 0).all(), "ascending and distinct"


def test_hashes_that_mark_something_else_are_moved() -> None:
    features = unweighted(corpus("zero one two"), lambda tokens: np.arange(len(tokens), dtype=np.uint64))
    assert features.hashes.tolist() == [2, 3], "0 and 1 become 2 and 3, and 2 is there already"
    assert features.starts.tolist() == [0, 2]


def test_a_corpus_keeps_words_alone() -> None:
    cut = cut_corpus(["的 施工 ！ ** 3", ""], lambda texts: [text.split() for text in texts], ["的"])
    assert cut.tokens == [["施工", "3"], []]


def test_bad_parameters() -> None:
    with pytest.raises(ConfigError, match="1 texts, but tokens of 0"):
        Corpus(["a"], [])
    with pytest.raises(ConfigError, match="a window has at least 2 words"):
        text_rank(corpus("a b"), window=1)
    with pytest.raises(ConfigError, match="damping"):
        text_rank(corpus("a b"), damping=1.0)
    with pytest.raises(ConfigError, match="a code has at least 1 character"):
        feature_codes(corpus("a"), length=0)
    with pytest.raises(ConfigError, match="a shingle has at least 1 word"):
        shingles(0)
    with pytest.raises(ConfigError, match="at least 1 feature"):
        strongest(frequency, 0)
