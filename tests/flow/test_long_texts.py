"""A long text is worked on piece by piece, and what comes out is what the whole text gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.flow.features import grams
from db_dedup.flow.features.counting import count_features
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.text import normalise, segment
from db_dedup.flow.text.normalise import fold_batch, normalise_batch
from db_dedup.flow.text.segment import cut_in_batches, make_segmenter

ODD = [
    "水", "电", "哈", "哈哈哈哈", "路灯", "四川", "a", "Ab", "xx", "xxxx", "***", "4.2", "50%", "c-d",
    "#+&._%-", "http://x.cn/a", "www.b.cn，", "。", "，", "、", ",", ";", "!", "?", ":", "……", " ", "\n",
    "\u3000", "\u00a0",
    "五", "二十", "万", "〇", "十", "两", "年", "月", "日", "元", "号", "数", "第", "块钱", "港", "份", "00",
    "e\u0301\u0323", "\u0301" * 40, "\u200b", "ﬁ", "½", "㐀", "𠮷", "😀", "ｘ", "ＡＢ", "１０",
]  # fmt: skip
texts = st.lists(st.sampled_from(ODD), max_size=60).map("".join)
few_texts = st.lists(st.lists(st.sampled_from(ODD), max_size=25).map("".join), max_size=3)


@pytest.fixture(autouse=True, scope="module")
def tiny_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalise, "_BATCH_CHARACTERS", 5)
        patch.setattr(segment, "_BATCH_CHARACTERS", 5)
        patch.setattr(grams, "_WINDOW", 5)
        yield


@given(st.lists(texts, max_size=4))
@example(["\u200b \u0301水电" * 4, "哈哈 " * 9, "", "水水水水水水水水水水水水水"])
def test_normalising(raw: list[str]) -> None:
    ways = {
        "plain": (normalise_batch(raw), normalise._steps("plain", True)),
        "tweet": (normalise_batch(raw, "tweet"), normalise._steps("tweet", True)),
        "values": (fold_batch(raw), normalise._FOLDING),
    }
    for name, (found, steps) in ways.items():
        assert found == normalise._normalised_lines(raw, steps), name
        if name != "tweet":
            assert [normalise._normalised_in_pieces(text, steps) for text in raw] == found, name


@pytest.mark.parametrize("name", [*segment.SEGMENTERS])
@settings(max_examples=25)
@given(raw=few_texts)
def test_cutting(name: str, raw: list[str]) -> None:
    segmenter = make_segmenter(name)
    normalised = normalise_batch(raw)
    assert [*chain(*cut_in_batches(segmenter, normalised))] == segmenter.cut_batch(normalised)


@settings(max_examples=15)
@given(raw=few_texts)
def test_cutting_with_words_of_a_user(raw: list[str]) -> None:
    segmenter = make_segmenter("jieba", ("水，电 5", "路灯四川 9", "a.b 3", "哈 水 9"))
    normalised = normalise_batch(raw)
    assert [*chain(*cut_in_batches(segmenter, normalised))] == segmenter.cut_batch(normalised)


def test_a_long_text_comes_in_several_batches() -> None:
    for name in segment.SEGMENTERS:
        batches = [*cut_in_batches(make_segmenter(name), ["短", "路灯坏了， 请修 " * 20, "长"])]
        assert len(batches) > 10
        assert sum(batch.count("\n") for batch in batches) == 3


def test_a_segmenter_of_somebody_else_is_given_whole_texts() -> None:
    class Foreign:
        name = "foreign"

        def cut_batch(self, texts: Sequence[str]) -> list[str]:
            return [token for text in texts for token in (text, "\n")]

    long = "路灯坏了， 请修 " * 20
    assert [*chain(*cut_in_batches(Foreign(), [long]))] == [long, "\n"]


@given(st.lists(texts, max_size=4))
def test_grams(raw: list[str]) -> None:
    normalised = normalise_batch(raw)
    by_windows = hash_grams(normalised)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grams, "_WINDOW", 1 << 18)
        whole = hash_grams(normalised)
    assert np.array_equal(by_windows, whole)
    if raw:
        runs = count_features([by_windows], [1], "raw")
        cut = make_segmenter("chars:3").cut_batch(normalised)
        assert int(runs.weights.sum()) == sum(any(map(str.isalnum, token)) for token in cut)
