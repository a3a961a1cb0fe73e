"""Counted in one compiled pass, the features of every row must be those that a dictionary counts."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from cityhash import CityHash64
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.flow.features import counting as features
from db_dedup.flow.features.counting import (
    TERM_FREQUENCIES,
    Features,
    TokenHasher,
    concatenate_features,
    count_features,
    hash_tokens_of,
    hash_values,
)

STOP_WORDS = ("的", "the", "。")
TOKENS = [
    "信访",
    "道路",
    "扰民",
    "abc",
    "a",
    "1",
    "½",
    "的",
    "the",
    "。",
    "*",
    " ",
    "",
    "\u0301",
    "\ud800",
    "é",
]
DAMPED: Mapping[str, Callable[[int], int]] = {
    "raw": lambda count: count,
    "log": lambda count: round(16 * (1 + math.log(min(count, 4095)))),
    "capped": lambda count: min(count, 3),
    "set": lambda _: 1,
}

Row = list[str]
tokens = st.lists(st.sampled_from(TOKENS), max_size=12)
rows_of_tokens = st.lists(tokens, max_size=6)
values = st.sampled_from(["", "信访", "3"])
term_frequencies = st.sampled_from(TERM_FREQUENCIES)


def city(text: str) -> int:
    value: int = CityHash64(text.encode("utf-8", "surrogatepass"))
    return value


def hashed(rows: Sequence[Row], hasher: TokenHasher | None = None) -> NDArray[np.uint64]:
    hasher = hasher or TokenHasher(STOP_WORDS)
    return hasher.hash_tokens([token for row in rows for token in [*row, "\n"]])


def counted(row: Row, weight: int, term_frequency: str) -> Counter[int]:
    words = [token for token in row if any(c.isalnum() for c in token) and token not in STOP_WORDS]
    return Counter({city(word): DAMPED[term_frequency](n) * weight for word, n in Counter(words).items()})


def as_counters(found: Features) -> list[Counter[int]]:
    rows = []
    for start, end in pairwise(found.starts.tolist()):
        hashes = found.hashes[start:end].tolist()
        assert hashes == sorted(set(hashes)), "ascending and distinct"
        rows.append(Counter(dict(zip(hashes, found.weights[start:end].tolist(), strict=True))))
    return rows


@given(rows_of_tokens, st.integers(1, 1000), term_frequencies)
@example([["信访"] * 7, [], ["的", "。"]], 3, "raw")
def test_one_column(rows: list[Row], weight: int, term_frequency: str) -> None:
    found = count_features([hashed(rows)], [weight], term_frequency)
    assert as_counters(found) == [counted(row, weight, term_frequency) for row in rows]
    assert found.counts.tolist() == [len(counted(row, 1, "set")) for row in rows]


@given(st.lists(st.tuples(tokens, tokens, values, values), max_size=5), term_frequencies)
def test_columns_add_up(rows: list[tuple[Row, Row, str, str]], term_frequency: str) -> None:
    found = count_features(
        [
            hashed([title for title, _, _, _ in rows]),
            hash_values("region", [region for _, _, region, _ in rows]),
            hashed([content for _, content, _, _ in rows]),
            hash_values("office", [office for _, _, _, office in rows]),
        ],
        [2, 5, 1, 7],
        term_frequency,
    )
    once = DAMPED[term_frequency](1)
    assert as_counters(found) == [
        counted(title, 2, term_frequency)
        + counted(content, 1, term_frequency)
        + valued("region", region, 5 * once)
        + valued("office", office, 7 * once)
        for title, content, region, office in rows
    ]


def valued(column: str, value: str, weight: int) -> Counter[int]:
    return Counter({city(f"{column}\x1f{value}"): weight}) if value else Counter()


@pytest.mark.parametrize("term_frequency", TERM_FREQUENCIES)
@pytest.mark.parametrize("times", [1, 2, 3, 4, 4095, 4096, 10_000])
def test_a_word_that_stands_often(term_frequency: str, times: int) -> None:
    found = count_features([hashed([["扰民"] * times])], [2], term_frequency)
    assert found.weights.tolist() == [2 * DAMPED[term_frequency](times)]


def test_equal_values_of_two_columns_are_two_features_and_neither_is_the_word() -> None:
    found = count_features(
        [hash_values("region", ["北京"]), hash_values("office", ["北京"]), hashed([["北京"]])],
        [1, 1, 1],
        "raw",
    )
    assert found.counts.tolist() == [3]


def test_blanks_say_nothing() -> None:
    found = count_features([hashed([[], [" "]]), hash_values("region", ["", ""])], [1, 2], "log")
    assert found.counts.tolist() == [0, 0]
    assert found.hashes.size == found.weights.size == 0


@given(tokens, st.integers(), term_frequencies)
def test_the_order_of_words_does_not_matter(row: Row, seed: int, term_frequency: str) -> None:
    shuffled = Random(seed).sample(row, len(row))
    one, other = as_counters(count_features([hashed([row, shuffled])], [1], term_frequency))
    assert one == other


def test_long_tokens_are_hashed_and_not_kept() -> None:
    hasher = TokenHasher()
    tokens = ["a" * length for length in (64, 65, 10_000)] * 2
    assert hasher.hash_tokens(tokens).tolist() == hash_tokens_of(tokens).tolist()
    assert sorted(map(len, hasher._vocabulary)) == [1, 64]


def test_a_full_vocabulary_is_replaced_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[f"词{i % 37}", "的", "*", f"word{i}", "the"] for i in range(200)]
    expected = hashed(rows)
    monkeypatch.setattr(features, "_VOCABULARY_LIMIT", 5)
    hasher = TokenHasher(STOP_WORDS)
    assert hashed(rows, hasher).tolist() == expected.tolist()
    full = hasher._vocabulary
    before = dict(full)
    assert hashed(rows[:2], hasher).tolist() == hashed(rows[:2]).tolist()
    assert len(hasher._vocabulary) < len(full)
    assert full == before, "another thread may still read it"


@given(st.lists(rows_of_tokens, max_size=4))
def test_batches_put_together_are_as_one(batches: list[list[Row]]) -> None:
    parts = [count_features([hashed(rows)], [3], "raw") for rows in batches]
    together = concatenate_features(parts)
    whole = count_features([hashed([row for rows in batches for row in rows])], [3], "raw")
    assert as_counters(together) == as_counters(whole)
    assert [together.starts.dtype, together.hashes.dtype, together.weights.dtype] == [
        np.int64,
        np.uint64,
        np.int64,
    ]


def test_columns_must_have_the_same_rows() -> None:
    with pytest.raises(ValueError, match=r"different numbers of rows: \[1, 2\]"):
        count_features([hashed([["a"], ["b"]]), hash_values("region", ["北京"])], [1, 1], "raw")


def test_an_unknown_term_frequency_names_the_known() -> None:
    with pytest.raises(ValueError, match="'often': one of raw, log, capped, set"):
        count_features([hashed([["a"]])], [1], "often")
