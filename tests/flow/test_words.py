"""Words that are hashed without strings are jieba's, and their hashes are CityHash64."""

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cityhash import CityHash64
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.errors import SegmenterError
from db_dedup.flow import words
from db_dedup.flow.features.counting import TokenHasher
from db_dedup.flow.features.word_hashes import hash_words
from db_dedup.flow.text import segment
from db_dedup.flow.text._jieba import import_jieba
from db_dedup.flow.words import word_hasher
from tests.flow.test_segment import HARD_CASES

jieba = import_jieba()

# Characters that make words, numbers and signs meet, and a few that stand for themselves.
ALPHABET = (
    "一二三有人市区中国上海的是了我们赞谢哈卡拉股恤oktTABc+#._-%&019 ,。!か゛γ射é\u0301㐀\ud800\U00020000\0٣①"
)


@cache
def _by_tokens() -> TokenHasher:
    return TokenHasher()


def _of_tokens(texts: Sequence[str]) -> list[int]:
    """Return the hashes of the tokens of jieba's segmenter that count."""
    hashes = _by_tokens().hash_tokens(segment.make_segmenter("jieba").cut_batch(texts))
    return [value for value in hashes.tolist() if value]


def _of_words(texts: list[str], stop_words: Sequence[str] = ()) -> list[int]:
    return [value for value in word_hasher("jieba", (), stop_words)(texts).tolist() if value]


@given(st.lists(st.one_of(st.text(ALPHABET, max_size=40), st.text(max_size=20)), max_size=6))
@example([case for case in HARD_CASES if "\n" not in case])
@example(["c++11 c#a at&t", "T恤a股 a股 AT&T 5.5.5%x 1..2 a_b-c", "", "\r\0国"])
def test_words_are_those_of_jieba(texts: list[str]) -> None:
    texts = [text.replace("\n", " ") for text in texts]
    assert _of_words(texts) == _of_tokens(texts)


@pytest.mark.parametrize(
    ("error", "raised"), [(RuntimeError, SegmenterError), (KeyError, SegmenterError), (OSError, OSError)]
)
def test_an_error_of_a_segmenter_does_not_show_the_text(
    error: type[Exception], raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails:
        name = "fails"

        def cut_batch(self, texts: Sequence[str]) -> list[str]:
            raise error(*texts)

    monkeypatch.setattr(words, "make_segmenter", lambda *_: Fails())
    with pytest.raises(raised) as caught:
        words.word_hasher("fails", (), ())(["secret"])
    assert raised is OSError or str(caught.value) == (
        f"the segmenter 'fails' failed on some text with {error.__name__}"
    )


@pytest.mark.parametrize("most", [1, 5, 16])
def test_words_of_the_dictionary_side_by_side_are_those_of_jieba(most: int) -> None:
    rng = random.Random(most)
    lines = Path(jieba.__file__).with_name("dict.txt").read_text(encoding="utf-8").splitlines()
    words = [line.split(" ")[0] for line in rng.sample(lines, 10_000)]
    texts = [
        "".join(rng.choice(words)[: rng.randint(1, 5)] for _ in range(rng.randint(1, most)))
        for _ in range(3_000)
    ]
    assert _of_words(texts) == _of_tokens(texts)


def test_a_long_text_is_cut_in_parts_with_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["路灯坏了，请修。 " * 40, "", "短", "没有标点的很长的一句话" * 30, "完"]
    whole = _of_words(texts)
    monkeypatch.setattr(segment, "_BATCH_CHARACTERS", 50)
    assert _of_words(texts) == whole == _of_tokens(texts)


def test_empty_texts_need_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of pairs reads texts that it need not segment: they come as empty ones."""
    wanted = _of_tokens(["", ""])
    monkeypatch.setattr(words, "load_dictionary", None)
    assert _of_words(["", ""]) == wanted
    assert _of_words([]) == []


def test_stop_words_are_left_out() -> None:
    texts = ["我们的路灯坏了", "的"]
    kept = _of_words(texts, ["的", "了"])
    dropped = {CityHash64(word.encode()) for word in ("的", "了")}
    assert kept == [value for value in _of_tokens(texts) if value not in dropped]


@given(st.lists(st.text(st.characters(exclude_characters="\n"), min_size=1, max_size=50), max_size=8))
@example(["a" * size for size in range(1, 40)])
@example(["国" * size for size in range(1, 13)])
@example(["\U00020000" * size for size in range(1, 10)])
def test_hashes_are_city_hashes(words: list[str]) -> None:
    points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    ends = np.cumsum(np.array(list(map(len, words)), np.int64))
    begins = ends - np.array(list(map(len, words)), np.int64)
    hashes: NDArray[np.uint64] = hash_words(points, np.append(begins, -1), np.append(ends, -1))
    assert hashes.tolist() == [*(CityHash64(word.encode("utf-8", "surrogatepass")) for word in words), 1]
