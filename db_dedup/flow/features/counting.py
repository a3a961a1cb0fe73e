"""Step 3, second half: tokens -> features.

A feature is the hash of a token or value, with an integer weight. The weight of a token is its damped
frequency times the weight of its column. A value is one feature, hashed together with the name of its column.
The presets count the raw frequency (docs/decisions/0001); the settings of a table can damp it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from cityhash import CityHash64
from numpy.typing import NDArray

from db_dedup.flow._arrays import slices_of, starts_of
from db_dedup.flow._compiled import kernel
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.records.recipe import RecipeColumn

TERM_FREQUENCIES: Final = ("raw", "log", "capped", "set")
"""How the frequency of a token counts: as it is, its logarithm, at most three, or one."""

_CAP = 3
_LOG_UNIT = 16
_DAMPING_SIZE = 4096
_VOCABULARY_LIMIT = 1_000_000
_LONGEST_KEPT = 64
"""Characters of a token in the vocabulary: a million of any length would not fit into memory."""

_DROPPED = 0
"""Replaces the hash of a token that is dropped."""
ROW_END: Final = 1
"""Marks the end of a row among the hashes of its tokens."""


@dataclass(frozen=True)
class Features:
    """The features of n rows in compressed sparse rows.

    Attributes:
        starts: int64[n + 1]; row i owns the slice starts[i]:starts[i + 1] of the two others.
        hashes: uint64[m], CityHash64 values, ascending and distinct within a row.
        weights: int64[m], positive.
    """

    starts: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    weights: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[n]: how many distinct features each row has."""
        return np.diff(self.starts)

    def take(self, rows: NDArray[np.int64]) -> "Features":
        """Return the features of these rows, in their order."""
        starts, taken = slices_of(self.starts, rows)
        weights = self.weights[taken] if self.weights.size else self.weights
        return Features(starts, self.hashes[taken], weights)


NO_FEATURES: Final = Features(np.zeros(1, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64))
"""The features of no rows."""


class _Vocabulary(dict[str, int]):
    """Token -> hash, computed once for each token of a usual length; tokens to drop have a number of their
    own."""

    def __init__(self, stop_words: Collection[str]) -> None:
        super().__init__(dict.fromkeys(stop_words, _DROPPED))
        self["\n"] = ROW_END

    def __missing__(self, token: str) -> int:
        has_alphanumeric = any(map(str.isalnum, token))
        value = _hash(token) if has_alphanumeric else _DROPPED
        if len(token) <= _LONGEST_KEPT:
            self[token] = value
        return value


class TokenHasher:
    """Turns the tokens of a batch into hashes; tokens without a letter, digit or ideograph are dropped."""

    def __init__(self, stop_words: Collection[str] = ()) -> None:
        """Prepare to drop the stop words, too; they must be normalised in the same way as the texts."""
        self._stop_words = tuple(stop_words)
        self._vocabulary = _Vocabulary(self._stop_words)

    def hash_tokens(self, tokens: Sequence[str]) -> NDArray[np.uint64]:
        """Return uint64[len(tokens)] for `count_features`; after each row the tokens have a "\\n"."""
        vocabulary = self._vocabulary
        if len(vocabulary) > _VOCABULARY_LIMIT:
            # A new one instead of clearing this one, which other threads may be reading.
            vocabulary = self._vocabulary = _Vocabulary(self._stop_words)
        return np.fromiter(map(vocabulary.__getitem__, tokens), np.uint64, len(tokens))


def hash_tokens_of(words: Collection[str]) -> NDArray[np.uint64]:
    """Return uint64[n]: the hashes of some words."""
    return np.array([_hash(word) for word in words], np.uint64)


def hash_values(column: str, values: Sequence[str]) -> NDArray[np.uint64]:
    """Hash whole values with their column's name; "" gives no feature.

    Returns:
        uint64[2 * len(values)] for `count_features`: after each value the end of its row.
    """
    hashes = np.full(2 * len(values), ROW_END, np.uint64)
    hashes[::2] = [_hash(f"{column}\x1f{value}") if value else _DROPPED for value in values]
    return hashes


def hash_columns(
    columns: Sequence[RecipeColumn],
    texts: Sequence[list[str]],
    hash_texts: Callable[[list[str]], NDArray[np.uint64]],
) -> list[NDArray[np.uint64]]:
    """Return the hashed texts and values of each column, for `count_features`.

    Args:
        columns: of the recipe.
        texts: column by column the texts of the same rows.
        hash_texts: hashes the texts of a column.
    """
    return [
        hash_values(column.name, own) if column.kind == "value" else hash_texts(own)
        for column, own in zip(columns, texts, strict=True)
    ]


def count_features(
    columns: Sequence[NDArray[np.uint64]], weights: Sequence[int], term_frequency: str
) -> Features:
    """Count, damp and weigh the hashed tokens of several columns of the same rows.

    Args:
        columns: for each column the result of `hash_tokens` or `hash_values`. These arrays are overwritten,
            since a second array for the millions of tokens of a long text would take too much memory.
        weights: the column weights, whole numbers >= 1.
        term_frequency: one of `TERM_FREQUENCIES`.

    Raises:
        ValueError: the columns have different numbers of rows, or there is no such term frequency.
    """
    row_counts = {_sort_rows(column) for column in columns}
    if len(row_counts) != 1:
        raise ValueError(f"columns with different numbers of rows: {sorted(row_counts)}")
    rows, damping = row_counts.pop(), _damping(term_frequency)
    counted = (
        Features(*_count(column, rows, weight, damping))
        for column, weight in zip(columns, weights, strict=True)
    )
    return reduce(_merged, counted)


def concatenate_features(parts: Sequence[Features]) -> Features:
    """Join the rows of several batches, one batch after the other."""
    if not parts:
        return NO_FEATURES
    counts = np.concatenate([part.counts for part in parts])
    return Features(
        starts_of(counts),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def _hash(text: str) -> int:
    value: int = CityHash64(text.encode("utf-8", "surrogatepass"))
    return value


def _damping(term_frequency: str) -> NDArray[np.int64]:
    """Return a table: count -> weight; empty for "raw". Larger counts have the weight of the last entry."""
    counts = np.arange(_DAMPING_SIZE, dtype=np.int64)
    match term_frequency:
        case "raw":
            return counts[:0]
        case "capped":
            return np.minimum(counts, _CAP)
        case "set":
            return np.minimum(counts, 1)
        case "log":
            logarithms: NDArray[np.float64] = np.log(np.maximum(counts, 1))
            return np.rint(_LOG_UNIT * (1 + logarithms)).astype(np.int64)
    raise ValueError(f"unknown term frequency {term_frequency!r}: one of {', '.join(TERM_FREQUENCIES)}")


def _merged(one: Features, other: Features) -> Features:
    """Return the features of two columns of the same rows together; the weights of equal ones are added."""
    merged = _merge(one.starts, one.hashes, one.weights, other.starts, other.hashes, other.weights)
    return Features(*merged)


def _sort_rows(column: NDArray[np.uint64]) -> int:
    """Sort the tokens of each row in place; return the number of rows.

    numpy sorts several times as fast as what numba compiles, and needs no compilation.
    """
    ends = np.flatnonzero(column == ROW_END).tolist()
    begin = 0
    for end in ends:
        column[begin:end].sort()
        begin = end + 1
    return len(ends)


@kernel
def _count(stream, row_count, weight, damping):
    """Keep each distinct token of each row, whose tokens are sorted, with its weight.

    The distinct tokens are written over the tokens of the stream.
    """
    starts = zeros(row_count + 1, np.int64)
    weights = empty(stream.size, np.int64)
    used, begin = 0, 0
    for row in range(row_count):
        end = begin
        while stream[end] != ROW_END:
            end += 1
        i = begin
        while i < end:
            token = stream[i]
            j = i
            while j < end and stream[j] == token:
                j += 1
            if token != _DROPPED:
                count = j - i
                damped = damping[min(count, damping.size - 1)] if damping.size else count
                stream[used] = token
                weights[used] = damped * weight
                used += 1
            i = j
        begin = end + 1
        starts[row + 1] = used
    return starts, stream[:used].copy(), weights[:used].copy()


@kernel
def _merge(starts_a, hashes_a, weights_a, starts_b, hashes_b, weights_b):
    starts = zeros(starts_a.size, np.int64)
    hashes = empty(hashes_a.size + hashes_b.size, np.uint64)
    weights = empty(hashes.size, np.int64)
    used = 0
    for row in range(starts.size - 1):
        i, i_end = starts_a[row], starts_a[row + 1]
        j, j_end = starts_b[row], starts_b[row + 1]
        while i < i_end or j < j_end:
            takes_a = i < i_end and (j == j_end or hashes_a[i] <= hashes_b[j])
            takes_b = j < j_end and (i == i_end or hashes_b[j] <= hashes_a[i])
            weight = np.int64(0)
            if takes_a:
                hashes[used] = hashes_a[i]
                weight += weights_a[i]
                i += 1
            if takes_b:
                hashes[used] = hashes_b[j]
                weight += weights_b[j]
                j += 1
            weights[used] = weight
            used += 1
        starts[row + 1] = used
    return starts, hashes[:used].copy(), weights[:used].copy()
