"""Steps 2 to 4 put together: a batch of rows in, their digests, features and fingerprints out.

The one place where a recipe becomes a fingerprint: scan, worker, check and cluster all call it, so their bits
are equal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import Value, WatchedTable
from db_dedup.engines.row_texts import NOTHING_TO_SAY, compared_columns, digest_columns
from db_dedup.errors import ConfigError
from db_dedup.flow.features import (
    NO_FEATURES,
    Features,
    TokenHasher,
    concatenate_features,
    count_features,
    hash_values,
)
from db_dedup.flow.fingerprint import fingerprint_rows
from db_dedup.flow.grams import hash_grams
from db_dedup.flow.minhash import find_bands
from db_dedup.flow.normalise import normalise_batch
from db_dedup.flow.passages import find_passages
from db_dedup.flow.segment import cut_in_batches, make_segmenter
from db_dedup.flow.sketches import Sketches, concatenate_sketches, empty_sketches, join_sketches
from db_dedup.flow.stop_words import STOP_WORDS
from db_dedup.records import SourceRow
from db_dedup.records.pages import cut_pages
from db_dedup.store.fingerprints import RowFingerprint

_Item = tuple[Sequence[str], str | None, bytes | None]
"""A row's texts, what it must agree in, and the digest that it had."""

HashTexts = Callable[[list[str]], NDArray[np.uint64]]


@dataclass(frozen=True)
class FingerprintedRows:
    """What the flow knows of n rows.

    Attributes:
        fingerprints: uint64[n]; meaningless where `has_fingerprint` is False.
        has_fingerprint: bool[n]; False where there is too little text to judge.
        digests: n digests of 16 bytes of the normalised columns.
        features: the features of the similarity, which are those of the fingerprint unless the measure is
            on character n-grams.
        sketches: of the n rows, for the second proposer; without a value where it is off.
        is_known: bool[n]; True for a row whose digest was known before. It has neither fingerprint nor
            features here, unless it is to be compared: it is then False, and the row has features alone.
    """

    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: list[bytes]
    features: Features
    sketches: Sketches
    is_known: NDArray[np.bool_]


class Fingerprinter:
    """Computes what one recipe makes of rows."""

    def __init__(self, watched: WatchedTable, hasher: TokenHasher | None = None) -> None:
        """Prepare the segmenter and the hashes, which takes a moment.

        Args:
            watched: the recipe.
            hasher: takes the place of the hasher of the recipe; for those who look at the tokens too.

        Raises:
            ConfigError: no such segmenter, or user words that it cannot take.
        """
        self._columns = list(watched.columns.items())
        self._normaliser = watched.normaliser
        self._rule = watched.rule
        self._weights = [column.weight for _, column in self._columns]
        try:
            self._segmenter = make_segmenter(watched.segmenter, normalise_batch(watched.user_words))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._hasher = hasher or TokenHasher(stop_words_of(watched))
        self._compares_grams = self._rule.similarity.startswith("char_")

    def fingerprint(
        self,
        rows: Sequence[Sequence[str]],
        within: Sequence[str | None] | None = None,
        known: Sequence[bytes | None] | None = None,
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """Run steps 2 to 4.

        Args:
            rows: for each row the watched columns' texts in their order, "" for NULL.
            within: for each row what it must agree in with a duplicate.
            known: for each row the digest it had when it was last fingerprinted; if it still has it, the row
                is not segmented again, which is by far the most work.
            compares_known: known rows are to be compared with others: they get their features and sketches,
                and are segmented where the similarity is one of words. They get no fingerprint.
        """
        count = len(rows)
        items = zip(rows, within or [None] * count, known or [None] * count, strict=True)
        pages = cut_pages(items, lambda item: sum(map(len, item[0])), max(1, count))
        parts = [self._fingerprint_page(page, compares_known) for page in pages]
        return joined_rows(parts) if parts else self._fingerprint_page((), compares_known)

    def _fingerprint_page(self, page: Sequence[_Item], compares_known: bool) -> FingerprintedRows:
        columns = compared_columns(
            [column for _, column in self._columns], self._normaliser, [row for row, _, _ in page]
        )
        within, known = [agree for _, agree, _ in page], [digest for _, _, digest in page]
        return self.fingerprint_compared(columns, within, known, compares_known=compares_known)

    def fingerprint_compared(
        self,
        columns: list[list[str]],
        within: Sequence[str | None],
        known: Sequence[bytes | None],
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """As `fingerprint`, of a page of rows whose texts are normalised already.

        Args:
            columns: column by column the texts of the rows, as `compared_columns` gives them.
            within: as for `fingerprint`.
            known: as for `fingerprint`.
            compares_known: as for `fingerprint`.
        """
        digests = digest_columns(columns, within)
        is_known = np.array(
            [digest == before for digest, before in zip(digests, known, strict=True)], np.bool_
        )
        blanked = [_blanked(texts, is_known) for texts in columns]
        needs_words = compares_known and not self._compares_grams
        features = self._features(
            columns if needs_words else blanked, self._hash_words, self._rule.term_frequency
        )
        counts = features.counts
        grams, sketches = self._grams(columns if compares_known else blanked)
        says_something = (is_known | (counts > 0)).tolist()
        return FingerprintedRows(
            fingerprint_rows(features.starts, features.hashes, features.weights),
            counts >= self._rule.min_features,
            [d if says else NOTHING_TO_SAY for d, says in zip(digests, says_something, strict=True)],
            grams if self._compares_grams else features,
            sketches,
            is_known & (not compares_known),
        )

    def _features(self, columns: list[list[str]], hash_texts: HashTexts, term_frequency: str) -> Features:
        return count_features(self._hashed(columns, hash_texts), self._weights, term_frequency)

    def _hashed(self, columns: list[list[str]], hash_texts: HashTexts) -> list[NDArray[np.uint64]]:
        return [
            hash_values(name, texts) if isinstance(column, Value) else hash_texts(texts)
            for (name, column), texts in zip(self._columns, columns, strict=True)
        ]

    def _grams(self, columns: list[list[str]]) -> tuple[Features, Sketches]:
        """Runs of three characters, and the sketches that are made of them, as far as the rule asks."""
        count = len(columns[0])
        if not (self._compares_grams or self._rule.bands):
            return NO_FEATURES, empty_sketches(count)
        hashed = self._hashed(columns, hash_grams)
        if not self._rule.bands:
            return count_features(hashed, self._weights, "raw"), empty_sketches(count)
        texts = [h for h, (_, column) in zip(hashed, self._columns, strict=True) if column.kind == "text"]
        passages = find_passages(
            texts, count
        )  # before the counting, which takes the grams out of their order
        grams = count_features(hashed, self._weights, "raw")
        return grams, join_sketches(find_bands(grams.starts, grams.hashes), *passages)

    def _hash_words(self, texts: list[str]) -> NDArray[np.uint64]:
        parts = [self._hasher.hash_tokens(tokens) for tokens in cut_in_batches(self._segmenter, texts)]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def joined_rows(parts: Sequence[FingerprintedRows]) -> FingerprintedRows:
    """The rows of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return FingerprintedRows(
        np.concatenate([part.fingerprints for part in parts]),
        np.concatenate([part.has_fingerprint for part in parts]),
        [digest for part in parts for digest in part.digests],
        concatenate_features([part.features for part in parts]),
        concatenate_sketches([part.sketches for part in parts]),
        np.concatenate([part.is_known for part in parts]),
    )


def row_fingerprints(page: Sequence[SourceRow], done: FingerprintedRows) -> list[RowFingerprint]:
    """What is to be stored of these rows."""
    fingerprints: Iterator[tuple[int, bool]] = zip(
        done.fingerprints.tolist(), done.has_fingerprint.tolist(), strict=True
    )
    return [
        RowFingerprint(row.row_key, row.order_value, value if has else None, digest)
        for row, (value, has), digest in zip(page, fingerprints, done.digests, strict=True)
    ]


def stop_words_of(watched: WatchedTable) -> list[str]:
    """The words that a recipe drops, normalised."""
    if watched.stop_word_list is not None:
        return normalise_batch(watched.stop_word_list)
    return normalise_batch(STOP_WORDS if watched.rule.stop_words == "drop" else ())


def _blanked(texts: list[str], is_known: NDArray[np.bool_]) -> list[str]:
    """The texts without those of the known rows; blank ones cost nothing."""
    return ["" if skip else text for text, skip in zip(texts, is_known.tolist(), strict=True)]
