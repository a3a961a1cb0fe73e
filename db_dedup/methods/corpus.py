"""Texts with their tokens: what features are made of."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.flow.features.counting import Features

CutTexts = Callable[[Sequence[str]], list[list[str]]]
"""n texts -> n lists of tokens in their order."""

HashTokens = Callable[[Sequence[str]], NDArray[np.uint64]]
"""m tokens -> uint64[m]."""


@dataclass(frozen=True)
class Corpus:
    """n texts and their tokens.

    Attributes:
        texts: as they were given.
        tokens: for each text its tokens that count, in their order.
    """

    texts: Sequence[str]
    tokens: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        """Check that each text has its tokens."""
        if len(self.texts) != len(self.tokens):
            raise InvalidArgumentError(
                "{texts} texts, but tokens of {tokens}", texts=len(self.texts), tokens=len(self.tokens)
            )


MakeFeatures = Callable[[Corpus, HashTokens], Features]
"""A corpus and a hash function -> the weighted features of each text."""


def cut_corpus(texts: Sequence[str], cut: CutTexts, stop_words: Collection[str] = ()) -> Corpus:
    """Cut texts into tokens and keep those that have a meaning.

    Args:
        texts: any strings. Bring them to one spelling first (`db_dedup.flow.text.normalise`), unless the
            features need the paragraphs, as feature codes do.
        cut: a segmenter.
        stop_words: tokens to drop.

    Returns:
        The corpus without stop words and without tokens that have no letter, digit or ideograph.
    """
    dropped = frozenset(stop_words)
    keeps: dict[str, bool] = {}

    def kept(token: str) -> bool:
        if token not in keeps:
            keeps[token] = token not in dropped and any(map(str.isalnum, token))
        return keeps[token]

    return Corpus(texts, [[token for token in tokens if kept(token)] for tokens in cut(texts)])
