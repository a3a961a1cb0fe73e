"""Two rows column by column: which tokens they share, and which columns turned which bits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import ColumnWeight, WatchedTable
from db_dedup.engines.fingerprinter import FingerprintedRows
from db_dedup.engines.row_texts import compared_texts
from db_dedup.flow.explanation import bit_sums, share_differing_bits
from db_dedup.flow.features import (
    Features,
    TokenHasher,
    concatenate_features,
    count_features,
    hash_values,
)
from db_dedup.flow.normalise import normalise_batch
from db_dedup.flow.segment import cut_in_batches, make_segmenter
from db_dedup.records import ExplainedColumn, MarkedToken, SourceRow


@dataclass(frozen=True)
class _Cut:
    """One column of one row.

    Attributes:
        text: as it is compared.
        tokens: what the segmenter cuts it into.
        features: what the column by itself gives to the row's fingerprint.
    """

    text: str
    tokens: tuple[MarkedToken, ...]
    features: Features


class ColumnExplainer:
    """Explains the columns of one recipe."""

    def __init__(self, watched: WatchedTable) -> None:
        """Prepare the segmenter."""
        self._columns = list(watched.columns.items())
        self._normaliser = watched.normaliser
        self._term_frequency = watched.rule.term_frequency
        self._segmenter = make_segmenter(watched.segmenter, normalise_batch(watched.user_words))

    def explain(self, row_a: SourceRow, row_b: SourceRow, done: FingerprintedRows) -> list[ExplainedColumn]:
        """Every column of two rows; `done` is what the fingerprinter gave for them, with their words."""
        own_a, own_b = (_features_of(done.features, i) for i in (0, 1))
        cuts_a, cuts_b = self._cuts(row_a, own_a, own_b), self._cuts(row_b, own_b, own_a)
        bits = _differing_bits(cuts_a, cuts_b) if done.has_fingerprint.all() else None
        return [
            ExplainedColumn(
                name=name,
                kind=column.kind,
                weight=column.weight,
                value_a=row_a.values[i],
                value_b=row_b.values[i],
                text_a=cuts_a[i].text,
                text_b=cuts_b[i].text,
                tokens_a=cuts_a[i].tokens,
                tokens_b=cuts_b[i].tokens,
                differing_bits=None if bits is None else bits[i],
            )
            for i, (name, column) in enumerate(self._columns)
        ]

    def _cuts(self, row: SourceRow, own: NDArray[np.uint64], other: NDArray[np.uint64]) -> list[_Cut]:
        return [
            self._cut(name, column, value, own, other)
            for (name, column), value in zip(self._columns, row.values, strict=True)
        ]

    def _cut(
        self,
        name: str,
        column: ColumnWeight,
        value: str,
        own: NDArray[np.uint64],
        other: NDArray[np.uint64],
    ) -> _Cut:
        """The tokens of a text; what is no feature of the row was ignored, whatever the reason."""
        [text] = compared_texts(column, [value], self._normaliser)
        found: dict[str, MarkedToken] = {}
        tokens: list[MarkedToken] = []
        hashes: list[NDArray[np.uint64]] = []
        for batch, hashed in self._hashed(name, column, text):
            is_own = _is_among(own, hashed)
            # A long text repeats its tokens by the thousand.
            found |= _marks(batch, is_own, _is_among(other, hashed), found)
            tokens += map(found.__getitem__, batch)
            hashes.append(hashed[is_own])
        stream = np.concatenate([*hashes, hash_values(name, [""])[1:]])
        return _Cut(text, tuple(tokens), count_features([stream], [column.weight], self._term_frequency))

    def _hashed(
        self, name: str, column: ColumnWeight, text: str
    ) -> Iterator[tuple[list[str], NDArray[np.uint64]]]:
        """Tokens, batch by batch, with their hashes."""
        if column.kind == "value":
            if text:
                yield [text], hash_values(name, [text])[:1]
            return
        hasher = TokenHasher()
        for batch in cut_in_batches(self._segmenter, [text]):
            tokens = batch[:-1] if batch[-1:] == ["\n"] else batch
            yield tokens, hasher.hash_tokens(tokens)


def _differing_bits(cuts_a: Sequence[_Cut], cuts_b: Sequence[_Cut]) -> list[float]:
    shares: list[float] = share_differing_bits(_bit_sums(cuts_a), _bit_sums(cuts_b)).tolist()
    return shares


def _bit_sums(cuts: Sequence[_Cut]) -> NDArray[np.int64]:
    """int64[columns, 64]: a row's columns one at a time, which add up to the row."""
    features = concatenate_features([cut.features for cut in cuts])
    return bit_sums(features.starts, features.hashes, features.weights)


def _marks(
    tokens: Sequence[str],
    is_own: NDArray[np.bool_],
    is_shared: NDArray[np.bool_],
    known: Mapping[str, MarkedToken],
) -> dict[str, MarkedToken]:
    """What those of the tokens are that are not known yet; equal tokens have equal marks."""
    places = dict(zip(tokens, range(len(tokens)), strict=True))
    return {
        token: MarkedToken(
            token,
            ("shared" if is_shared[places[token]] else "differs") if is_own[places[token]] else "ignored",
        )
        for token in places.keys() - known.keys()
    }


def _is_among(features: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of some hashes are among the features, which are in ascending order."""
    if not features.size:
        return np.zeros(hashes.size, np.bool_)
    places = np.minimum(np.searchsorted(features, hashes), features.size - 1)
    is_among: NDArray[np.bool_] = features[places] == hashes
    return is_among


def _features_of(features: Features, row: int) -> NDArray[np.uint64]:
    return features.hashes[features.starts[row] : features.starts[row + 1]]
