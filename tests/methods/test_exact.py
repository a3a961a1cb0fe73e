"""Bloom filters and the digit trie: what counts as seen, and how much memory it takes."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.errors import ConfigError
from db_dedup.flow._compiled import kernel
from db_dedup.methods import BloomFilter, DigitTrie, EitherBitFilter, SeenTexts, ap, bkdr
from db_dedup.methods._trie import DIGITS, write_square

batches_of_texts = st.lists(st.lists(st.text("abc", max_size=3), max_size=8), max_size=5)


@given(batches_of_texts)
def test_a_seen_text_is_never_missed(batches: list[list[str]]) -> None:
    stages: list[SeenTexts] = [EitherBitFilter(50), BloomFilter(10), DigitTrie()]
    for stage in stages:
        before: set[str] = set()
        for batch in batches:
            for text, seen in zip(batch, stage.add(batch), strict=True):
                assert seen or text not in before
                before.add(text)


@given(batches_of_texts, st.integers(1, 60))
def test_either_bit_is_enough_in_p3(batches: list[list[str]], bits: int) -> None:
    stage, is_set = EitherBitFilter(bits), [False] * bits
    for batch in batches:
        expected = []
        for text in batch:
            places = int(bkdr([text])[0]) % bits, int(ap([text])[0]) % bits
            expected.append(is_set[places[0]] or is_set[places[1]])
            is_set[places[0]] = is_set[places[1]] = True
        assert stage.add(batch).tolist() == expected


def test_the_share_of_false_answers_in_p3() -> None:
    """1 - (1 - s / m)**2 with s of m bits set, by its docstring."""
    texts = [f"text {i}" for i in range(12_000)]
    stage = EitherBitFilter(20_000)
    stage.add(texts[:2_000])
    share = float(np.mean(stage._is_set))
    expected = 1 - (1 - share) ** 2
    false = np.mean([stage.add([text])[0] for text in texts[2_000:2_200]])
    assert abs(false - expected) < 4 * math.sqrt(expected * (1 - expected) / 200) + 0.02


@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_the_false_positive_rate_is_what_was_asked_for(rate: float) -> None:
    count = 20_000
    stage = BloomFilter(count, rate)
    stage.add([f"stored {i}" for i in range(count)])
    asked = BloomFilter.restore(stage.dump())
    false = sum(f"new {i}" in asked._filter for i in range(count)) / count
    assert false < rate + 4 * math.sqrt(rate * (1 - rate) / count)
    assert false > rate / 2, "it is as small as it says"
    assert stage.memory_bytes == pytest.approx(count * 1.44 * math.log2(1 / rate) / 8, rel=0.1)


def test_a_filter_comes_back_as_it_was_dumped() -> None:
    stage = BloomFilter(100)
    stage.add(["施工", "\ud800"])
    restored = BloomFilter.restore(stage.dump())
    assert restored.add(["施工", "扰民", "\ud800"]).tolist() == [True, False, True]


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:40], lambda b: b + b"0", lambda b: b[16:]])
def test_a_part_of_a_dump_is_refused(change: Callable[[bytes], bytes]) -> None:
    stage = BloomFilter(100)
    stage.add(["施工"])
    with pytest.raises(ConfigError, match="no Bloom filter, or not all of one"):
        BloomFilter.restore(change(stage.dump()))


@kernel  # type: ignore[untyped-decorator]
def _write_square(value: np.uint64, digits: NDArray[np.uint8]) -> None:
    write_square(value, digits)


@given(st.integers(0, 2**64 - 1))
def test_the_digits_of_a_square(value: int) -> None:
    digits = np.empty(DIGITS, np.uint8)
    _write_square(np.uint64(value), digits)
    assert "".join(map(str, digits.tolist())) == str(value**2).zfill(DIGITS)


@given(st.lists(st.integers(0, 40) | st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 2**64 - 1)))
def test_the_trie_knows_each_number_that_it_was_given(values: list[int]) -> None:
    """Small numbers, whose squares begin with many zeros, and large neighbours share most of their digits."""
    trie = DigitTrie()
    before: set[int] = set()
    for value in values:
        assert trie.add_hashes(np.array([value], np.uint64)).tolist() == [value in before]
        before.add(value)
    assert trie.add_hashes(np.array(values, np.uint64)).all()


@pytest.mark.parametrize(
    ("count", "most_megabytes"), [(100_000, 10), pytest.param(2_500_000, 120, marks=pytest.mark.thorough)]
)
def test_the_trie_of_many_texts_fits(count: int, most_megabytes: int) -> None:
    trie = DigitTrie()
    hashes = np.random.default_rng(1).integers(0, 2**64, count, np.uint64)
    assert not trie.add_hashes(hashes).any()
    assert trie.add_hashes(hashes).all()
    assert trie.memory_bytes < most_megabytes * 1e6


@pytest.mark.parametrize("saved", [b"", b"12345678", bytes(100), b"x" * 100], ids=lambda b: str(len(b)))
def test_bytes_that_are_no_filter_are_refused(saved: bytes) -> None:
    with pytest.raises(ConfigError, match="these bytes are no Bloom filter"):
        BloomFilter.restore(saved)


def test_bad_sizes() -> None:
    with pytest.raises(ConfigError, match="at least 1 bit, not 0"):
        EitherBitFilter(0)
    with pytest.raises(ConfigError, match=r"1 text or more and a rate between 0 and 1, not 0 and 0.1"):
        BloomFilter(0, 0.1)
    with pytest.raises(ConfigError, match="not 5 and 1"):
        BloomFilter(5, 1)
