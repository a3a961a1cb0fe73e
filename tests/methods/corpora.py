"""Small corpora, by hand and at random."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

from db_dedup.flow.features.counting import Features
from db_dedup.methods import Corpus

WORDS: Final = ("夜间", "施工", "噪音", "扰民", "公交", "晚点", "物业", "收费", "a", "b")

token_lists = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=2, max_size=8)
"""Tokens of 2 to 8 texts, of which some have none."""


def corpus(*texts: str) -> Corpus:
    """Texts whose tokens have spaces between them."""
    return of_tokens([text.split() for text in texts])


def of_tokens(tokens: Sequence[Sequence[str]]) -> Corpus:
    return Corpus([" ".join(row) for row in tokens], tokens)


def rows_of(features: Features) -> list[dict[int, int]]:
    """For each row its features with their weights."""
    hashes, weights = features.hashes.tolist(), features.weights.tolist()
    slices = zip(features.starts[:-1].tolist(), features.starts[1:].tolist(), strict=True)
    return [dict(zip(hashes[begin:end], weights[begin:end], strict=True)) for begin, end in slices]
