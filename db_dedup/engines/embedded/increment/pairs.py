"""The third step of a batch: search, confirm and write the pairs of canonical rows."""

from collections.abc import Sequence

import numpy as np

from db_dedup.engines.embedded.increment.exact_duplicates import CanonicalRows
from db_dedup.engines.embedded.increment.scope import BatchScope
from db_dedup.engines.embedded.pair_search import PairSearch, oriented
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store.pairs import StoredPairs, read_pairs_of, replace_pairs
from db_dedup.store.sketches import put_sketches


def search_pairs(
    scope: BatchScope, outdated: Sequence[AnswerRow], canonical: CanonicalRows
) -> frozenset[int]:
    """Write the pairs of the canonical rows that are new or have changed; return the ids of all paired rows.

    Args:
        scope: the batch, the canonical rows linked.
        outdated: rows as they were stored, whose pairs may be gone.
        canonical: which rows to search, and which rows may be in no pair any more.
    """
    asked = [scope.rows[i] for i in sorted(canonical.searched) if scope.rows[i].fingerprint is not None]
    places = _put_sketches(scope, asked) if scope.watched.rule.sketches else {}
    search = PairSearch(scope.connection, scope.store, scope.watched, scope.index, scope.texts)
    affected = {row.id for row in outdated} | canonical.searched | canonical.demoted
    prepared = scope.prepared
    if prepared is None or not prepared.pairs:
        found = search.find(asked, places, scope.rows)
    else:
        since = [row for row_id, row in prepared.since.items() if row_id not in affected]
        void = prepared.outdated | affected
        found = search.find_after(asked, places, scope.rows, prepared.pairs, since, void)
        prepared.note_written(asked, affected)
    pairs = _without_rejected(scope, found)
    old = read_pairs_of(scope.connection, scope.store, scope.rows.grouped(affected))
    replace_pairs(scope.connection, scope.store, old, pairs, scope.now)
    return frozenset(np.union1d(pairs.id_a, pairs.id_b).tolist())


def _put_sketches(scope: BatchScope, asked: Sequence[AnswerRow]) -> dict[int, int]:
    """Write the sketches of rows; return the place of each among the texts, by id."""
    scope.texts.read(scope.connection, asked)
    places = {row.id: scope.texts.place(row) for row in asked}
    found = {row_id: place for row_id, place in places.items() if place is not None}
    sketches = scope.texts.sketches()
    put_sketches(scope.connection, scope.store, {i: sketches.bytes_of(place) for i, place in found.items()})
    return found


def _without_rejected(scope: BatchScope, pairs: StoredPairs) -> StoredPairs:
    """Return the pairs that people have not rejected, in each the row first that was received first."""
    rows = {scope.rows[i] for i in np.union1d(pairs.id_a, pairs.id_b).tolist()}
    pairs = oriented(pairs, lambda row_id: scope.received(scope.rows[row_id]))
    rejected = {frozenset(pair) for pair in scope.rejected_ids(rows)}
    if not rejected:
        return pairs
    ids = zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)
    return pairs.only(np.array([frozenset(pair) not in rejected for pair in ids], np.bool_))
