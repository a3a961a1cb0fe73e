"""Two rows column by column: which tokens they share, and which columns turned which bits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import ColumnWeight, WatchedTable
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.flow.explanation import bit_sums, share_differing_bits
from db_dedup.flow.features import Features, TokenHasher, hash_values
from db_dedup.flow.normalise import normalise_batch
from db_dedup.flow.segment import make_segmenter
from db_dedup.records import ExplainedColumn, MarkedToken, SourceRow


class ColumnExplainer:
    """Explains the columns of one recipe."""

    def __init__(self, watched: WatchedTable, fingerprinter: Fingerprinter) -> None:
        """Prepare the segmenter.

        Args:
            watched: the recipe.
            fingerprinter: gives the features that a fingerprint of it is made of.
        """
        self._columns = list(watched.columns.items())
        self._normaliser = watched.normaliser
        self._segmenter = make_segmenter(watched.segmenter, normalise_batch(watched.user_words))
        self._fingerprinter = fingerprinter

    def explain(self, row_a: SourceRow, row_b: SourceRow, done: FingerprintedRows) -> list[ExplainedColumn]:
        """Every column of two rows; `done` is what the fingerprinter gave for them."""
        own_a, own_b = (_features_of(done.features, i) for i in (0, 1))
        bits = self._differing_bits(row_a, row_b, done)
        explained = []
        for i, (name, column) in enumerate(self._columns):
            text_a, text_b = self._normalised(column, [row_a.values[i], row_b.values[i]])
            explained.append(
                ExplainedColumn(
                    name=name,
                    kind=column.kind,
                    weight=column.weight,
                    value_a=row_a.values[i],
                    value_b=row_b.values[i],
                    text_a=text_a,
                    text_b=text_b,
                    tokens_a=self._marked(name, column, text_a, own_a, own_b),
                    tokens_b=self._marked(name, column, text_b, own_b, own_a),
                    differing_bits=None if bits is None else bits[i],
                )
            )
        return explained

    def _differing_bits(
        self, row_a: SourceRow, row_b: SourceRow, done: FingerprintedRows
    ) -> list[float] | None:
        if not done.has_fingerprint.all():
            return None
        shares: list[float] = share_differing_bits(self._bit_sums(row_a), self._bit_sums(row_b)).tolist()
        return shares

    def _bit_sums(self, row: SourceRow) -> NDArray[np.int64]:
        """int64[columns, 64]: a row's columns one at a time, the others blank, which add up to the row."""
        count = len(self._columns)
        alone = [[text if i == j else "" for j, text in enumerate(row.values)] for i in range(count)]
        features = self._fingerprinter.fingerprint(alone).features
        return bit_sums(features.starts, features.hashes, features.weights)

    def _normalised(self, column: ColumnWeight, texts: Sequence[str]) -> list[str]:
        return normalise_batch(texts, self._normaliser if column.kind == "text" else "plain")

    def _marked(
        self,
        name: str,
        column: ColumnWeight,
        text: str,
        own: NDArray[np.uint64],
        other: NDArray[np.uint64],
    ) -> tuple[MarkedToken, ...]:
        """The tokens of a text; what is no feature of the row was ignored, whatever the reason."""
        if column.kind == "value":
            tokens = [text] if text else []
            hashes = hash_values(name, tokens)[::2]
        else:
            tokens = self._segmenter.cut_batch([text])[:-1]
            hashes = TokenHasher().hash_tokens(tokens)
        counts, is_shared = np.isin(hashes, own).tolist(), np.isin(hashes, other).tolist()
        return tuple(
            MarkedToken(token, ("shared" if shared else "differs") if is_feature else "ignored")
            for token, is_feature, shared in zip(tokens, counts, is_shared, strict=True)
        )


def _features_of(features: Features, row: int) -> NDArray[np.uint64]:
    return features.hashes[features.starts[row] : features.starts[row + 1]]
