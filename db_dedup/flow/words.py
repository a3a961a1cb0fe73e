"""Step 3 on the columns of texts: from normalised texts to the hashes of their words."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import DedupError, SegmenterError
from db_dedup.flow._code_points import code_points
from db_dedup.flow.features.counting import ROW_END, TokenHasher, hash_tokens_of
from db_dedup.flow.features.grams import ALPHANUMERIC, KINDS
from db_dedup.flow.features.word_hashes import hash_words
from db_dedup.flow.text.jieba_words import find_words, is_known_dictionary, load_dictionary
from db_dedup.flow.text.segment import JIEBA, cut_in_batches, make_segmenter, sentence_parts

HashTexts = Callable[[list[str]], NDArray[np.uint64]]
"""Texts of a column -> the hashes of their words for `count_features`, with a mark at the end of each row."""

_DROPPED = 0


def word_hasher(
    name: str, user_words: Sequence[str], stop_words: Collection[str], hasher: TokenHasher | None = None
) -> HashTexts:
    """Return what turns texts into the hashes of their words.

    jieba's words without user words, which nearly all recipes have, are found and hashed without a string
    for each. The hashes are the same.

    Args:
        name: of the segmenter.
        user_words: normalised.
        stop_words: normalised.
        hasher: hashes the tokens, for a caller that records them.

    Raises:
        ValueError: there is no such segmenter, or it cannot take the user words. The function that is
            returned raises SegmenterError where the segmenter fails on some text.
    """
    if hasher is None and name == JIEBA and not user_words and is_known_dictionary():
        return _JiebaHasher(stop_words).hash_texts
    segmenter, tokens = make_segmenter(name, user_words), hasher or TokenHasher(stop_words)

    def hash_texts(texts: list[str]) -> NDArray[np.uint64]:
        with _segmenter_errors(name):
            parts = [tokens.hash_tokens(own) for own in cut_in_batches(segmenter, texts)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    return hash_texts


@contextmanager
def _segmenter_errors(name: str) -> Iterator[None]:
    """Raise SegmenterError for any error that the text may be the cause of, rather than the machine."""
    try:
        yield
    except (DedupError, MemoryError, OSError):
        raise
    except Exception as error:
        raise SegmenterError(
            "the segmenter {name!r} failed on some text with {error_type}",
            name=name,
            error_type=type(error).__name__,
        ) from error


class _JiebaHasher:
    """Hashes the words of jieba's precise mode.

    The dictionary is loaded for the first text that is not empty. A caller whose rows are all known, such as
    a list of pairs, never loads it.
    """

    def __init__(self, stop_words: Collection[str]) -> None:
        self._stop_words = hash_tokens_of(stop_words)

    def hash_texts(self, texts: Sequence[str]) -> NDArray[np.uint64]:
        if any("\n" in text for text in texts):
            raise ValueError("a normalised text has no newline")
        if not any(texts):
            return np.full(len(texts), ROW_END, np.uint64)
        parts = [self._hash_joined(joined) for joined in sentence_parts(texts)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def _hash_joined(self, joined: str) -> NDArray[np.uint64]:
        points = code_points(joined)
        begins, ends = find_words(points, KINDS.of(points) == ALPHANUMERIC, load_dictionary())
        stream = hash_words(points, begins, ends)
        if self._stop_words.size:
            stream[np.isin(stream, self._stop_words)] = _DROPPED
        return stream
