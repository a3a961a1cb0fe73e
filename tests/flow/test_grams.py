"""Runs of three characters: the same as the segmenter's, hashed without a string for each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.features.counting import TokenHasher, count_features
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import make_segmenter

characters = st.sampled_from("ab路灯坏了 。、1𠮷\ud800\u0301\x00")
texts = st.lists(st.text(characters, max_size=12), max_size=6)


@given(texts)
def test_runs_are_those_of_the_segmenter(raw: list[str]) -> None:
    """By name: equal runs have equal hashes, in the one way as in the other, and none is lost."""
    rows = normalise_batch(raw)
    cut = TokenHasher().hash_tokens(make_segmenter("chars:3").cut_batch(rows))
    by_segmenter = count_features([cut.copy()], [1], "raw")
    by_points = count_features([hash_grams(rows)], [1], "raw") if rows else by_segmenter
    assert by_points.starts.tolist() == by_segmenter.starts.tolist()
    same: dict[int, int] = {}
    for i in range(len(rows)):
        part = slice(by_points.starts[i], by_points.starts[i + 1])
        ours, theirs = (sorted(f.weights[part].tolist()) for f in (by_points, by_segmenter))
        assert ours == theirs
    stream, tokens = hash_grams(rows), cut
    assert stream.size == tokens.size
    for ours, theirs in zip(stream.tolist(), tokens.tolist(), strict=True):
        assert same.setdefault(ours, theirs) == theirs
    assert len(set(same.values())) == len(same)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("路", 1), ("路灯", 1), ("路灯坏", 1), ("路 灯坏了", 2), ("。。。", 0), ("a。。b", 2)],
)
def test_how_many_runs(text: str, count: int) -> None:
    assert count_features([hash_grams([text])], [1], "raw").counts.tolist() == [count]


def test_no_rows() -> None:
    assert hash_grams([]).size == 0


def test_a_short_text_is_no_part_of_a_longer_one() -> None:
    """A run of two is not the run of three that begins with the character zero."""
    first, second = hash_grams(["路灯", "\x00路灯"]).tolist()[::2]
    assert first != second


def test_hashes_never_change() -> None:
    """What is stored was computed by them."""
    assert hash_grams(["路灯坏", "a"]).tolist() == GOLDEN


GOLDEN = [3930310117504558441, 1, 17508005127702757215, 1]
