"""The third step of a batch: search and confirm the pairs of canonical rows. The last step writes them."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded.increment.exact_duplicates import CanonicalRows
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.engines.embedded.pair_search import PairSearch, oriented
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store.pairs import StoredPairs, concatenate_pairs, distinct_pairs, read_pairs_of


class BatchPairs:
    """The pairs around a batch, before they are written.

    Attributes:
        affected: ids of the rows whose stored pairs are void.
        old: their stored pairs.
        found: the pairs that have been found, in each the row first that was received first.
    """

    def __init__(self, scope: BatchScope, search: PairSearch, affected: frozenset[int]) -> None:
        """Read the stored pairs of the affected rows; nothing is searched yet."""
        self._scope, self._search = scope, search
        self.affected = affected
        self.old = read_pairs_of(scope.connection, scope.store, scope.rows.grouped(affected))
        self.found = concatenate_pairs(())

    def add(self, pairs: StoredPairs) -> None:
        """Add pairs that have been found, without those that people have rejected."""
        self.found = distinct_pairs(
            concatenate_pairs([self.found, self.without_rejected(pairs)]),
        )

    def search(self, rows: Sequence[AnswerRow]) -> None:
        """Add all pairs of some canonical rows that have not changed."""
        asked = sorted(rows, key=lambda row: row.id)
        self._scope.texts.read(self._scope.connection, asked)
        places = {row.id: self._scope.texts.place(row.digest) for row in asked}
        known = {row_id: place for row_id, place in places.items() if place is not None}
        self.add(self._search.find(asked, known, self._scope.rows))

    def between(
        self, asked: Sequence[AnswerRow], which: NDArray[np.int64], ids: NDArray[np.int64]
    ) -> StoredPairs:
        """Return those of some pairs of rows that are duplicate pairs; the arguments are `find_between`'s."""
        return self.without_rejected(self._search.find_between(asked, which, ids, self._scope.rows))

    def without_rejected(self, pairs: StoredPairs) -> StoredPairs:
        """Return the pairs that people have not rejected, in each the row first that was received first."""
        scope = self._scope
        rows = {scope.rows[i] for i in np.union1d(pairs.id_a, pairs.id_b).tolist()}
        pairs = oriented(pairs, lambda row_id: scope.received(scope.rows[row_id]))
        rejected = {frozenset(pair) for pair in scope.rejected_ids(rows)}
        if not rejected:
            return pairs
        ids = zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)
        return pairs.only(np.array([frozenset(pair) not in rejected for pair in ids], np.bool_))


def search_pairs(
    scope: BatchScope, outdated: Sequence[AnswerRow], canonical: CanonicalRows, places: Mapping[int, int]
) -> BatchPairs:
    """Find the pairs of the canonical rows that are new or have changed.

    Args:
        scope: the batch, the canonical rows linked.
        outdated: rows as they were stored, whose pairs may be gone.
        canonical: which rows to search, and which rows may be in no pair any more.
        places: id -> place among the texts, of the rows that have a sketch.
    """
    asked = scope.searchable(canonical.searched)
    search = PairSearch(scope.connection, scope.store, scope.watched, scope.index, scope.texts)
    affected = frozenset(row.id for row in outdated) | canonical.searched | canonical.demoted
    prepared = scope.prepared
    if prepared is None or not prepared.pairs:
        found = search.find(asked, places, scope.rows)
    else:
        since = [row for row_id, row in prepared.since.items() if row_id not in affected]
        void = prepared.outdated | affected
        found = search.find_after(asked, places, scope.rows, prepared.pairs, since, void)
        prepared.note_written(asked, affected)
    pairs = BatchPairs(scope, search, affected)
    pairs.add(found)
    return pairs


def pair_ids(pairs: StoredPairs) -> list[tuple[int, int]]:
    """Return the ids of each pair."""
    return list(zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True))


def having(pairs: StoredPairs, rows: Collection[int]) -> NDArray[np.bool_]:
    """Return bool[p]: which pairs have one of these rows."""
    ids = np.fromiter(rows, np.int64, len(rows))
    return np.isin(pairs.id_a, ids) | np.isin(pairs.id_b, ids)
