"""Record the tokens of texts while they are hashed, as numbers, so that each text is segmented only once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.features.counting import TokenHasher

_TEXT_END = "\n"


@dataclass(frozen=True)
class RecordedTokens:
    """The tokens of several texts.

    Attributes:
        words: the different tokens of all texts.
        hashes: uint64[len(words)], the hashes of the words; the hash of a dropped word is no feature.
        texts: for each text int32[n], its tokens in their order, as positions in `words`.
    """

    words: list[str]
    hashes: NDArray[np.uint64]
    texts: list[NDArray[np.int32]]


class TokenRecorder(TokenHasher):
    """Hashes tokens as `TokenHasher` does, and records them.

    A token is recorded as a number, since a long text has millions of tokens.
    """

    def __init__(self, stop_words: Collection[str] = ()) -> None:
        super().__init__(stop_words)
        self._numbers = _Numbers()
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._batches: list[NDArray[np.int32]] = []

    def hash_tokens(self, tokens: Sequence[str]) -> NDArray[np.uint64]:
        """Hash the tokens as `TokenHasher.hash_tokens` does, and record them."""
        numbers = np.fromiter(map(self._numbers.__getitem__, tokens), np.int32, len(tokens))
        new = [*islice(self._numbers, self._hashes.size, None)]
        self._hashes = np.concatenate([self._hashes, super().hash_tokens(new)])
        self._batches.append(numbers)
        return self._hashes[numbers]

    def take(self) -> RecordedTokens:
        """Return the recorded tokens, text by text, and delete them from the recorder."""
        stream = np.concatenate([np.empty(0, np.int32), *self._batches])
        ends = np.flatnonzero(stream == self._numbers[_TEXT_END])
        texts = [text[:-1] for text in np.split(stream, ends + 1)[:-1]]
        taken = RecordedTokens([*self._numbers], self._hashes, texts)
        self.clear()
        return taken

    def clear(self) -> None:
        """Delete the recorded tokens."""
        self._numbers = _Numbers()
        self._hashes = np.empty(0, np.uint64)
        self._batches = []


class _Numbers(dict[str, int]):
    """Token -> its number; tokens are numbered in the order of their first occurrence."""

    def __missing__(self, token: str) -> int:
        self[token] = number = len(self)
        return number
