"""The duplicate pairs of some rows, with each other and with all that is stored.

The candidates of a search are compared in parts: their texts are read, compared with the texts of the asked
rows, and deleted from memory. So the memory depends on the number of asked rows and of confirmed pairs, never
on how many rows of the table share a phrase.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_search import (
    NO_CANDIDATES,
    Candidates,
    CandidateSearch,
    Places,
    fingerprints_of,
    in_pieces,
)
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.neighbourhood import Neighbourhood
from db_dedup.engines.embedded.sharing import are_candidates
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.compare.kinds import swapped_kinds
from db_dedup.flow.rows.order import Receipt
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store import neighbours
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import NewEntries
from db_dedup.store.pairs import StoredPairs, concatenate_pairs

_SIDES: Final = ("left", "right")


class FoundPairs(NamedTuple):
    """The p duplicates of one row, found ahead.

    Attributes:
        own_id: the id that the row was searched with, below zero.
        ids: int64[p], of stored rows; below zero: of rows that were searched with it.
        distances, similarities, kinds: as in `StoredPairs`, the row first.
    """

    own_id: int
    ids: NDArray[np.int64]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]
    kinds: NDArray[np.uint8]


class PairSearch:
    """Searches in the database, or in an index in memory, within the caller's transaction."""

    def __init__(
        self,
        connection: Connection,
        store: FingerprintStore,
        watched: WatchedTable,
        index: FingerprintIndex | None,
        texts: CandidateTexts,
    ) -> None:
        self._connection, self._store, self._texts = connection, store, texts
        self._radius, self._has_sketches = watched.rule.radius, watched.rule.sketches
        self._search = CandidateSearch(connection, store, watched, index, texts)

    def find_after(
        self,
        asked: Sequence[AnswerRow],
        places: Places,
        rows: Neighbourhood,
        before: Mapping[bytes, FoundPairs],
        since: Sequence[AnswerRow],
        void: Collection[int],
    ) -> StoredPairs:
        """Return what `find` returns; rows that `find_ahead` has found are not searched or compared again.

        Args:
            asked: as for `find`.
            places: as for `find`.
            rows: as for `find`.
            before: digest of a row -> what `find_ahead` returned of it.
            since: canonical rows that were written after that, in earlier transactions.
            void: ids of all rows that were written or stopped being canonical after that, this transaction
                included. No other row has changed.
        """
        late = np.array([row.id for row in [*asked, *since]], np.int64)
        pairs = [
            _found_before(asked, since, before, np.union1d(late, np.fromiter(void, np.int64, len(void))))
        ]
        rows.load(neighbours.rows_of_ids(self._connection, self._store, _missing(pairs[0].id_b, rows)))
        new = [row for row in asked if row.digest not in before]
        known = [row for row in asked if row.digest in before]
        since_new = [row for row in since if row.digest not in before]
        # These come before any comparison, which may delete features from memory and so change the places.
        of_new = self._search.among(new, [*known, *since], places) if new else NO_CANDIDATES
        of_known = self._search.among(known, since_new, places) if since_new else NO_CANDIDATES
        of_known = of_known.of_rows(since_new)
        if new:
            more = self.find(new, places, rows)
            pairs.append(more.only(~np.isin(more.id_b, late)))
        pairs += [self._confirmed(new, part, rows) for part in in_pieces(of_new)]
        pairs += [self._confirmed(known, part, rows) for part in in_pieces(of_known)]
        return concatenate_pairs(pairs)

    @property
    def new_entries(self) -> dict[int, NewEntries]:
        """Id of a row that was searched ahead -> what is to be written of its sketch, if that is not all."""
        return self._search.new_entries

    def find_ahead(self, asked: Sequence[AnswerRow], stored_ids: Mapping[int, int]) -> list[FoundPairs]:
        """Return for each of some rows its duplicates among the stored rows and among these rows.

        Args:
            asked: their features are in memory. Their ids are distinct, and below zero.
            stored_ids: id of an asked row -> id of the same row as it is stored.
        """
        placed = ((row.id, self._texts.place(row.digest)) for row in asked)
        places = {row_id: place for row_id, place in placed if place is not None}
        rows = Neighbourhood()
        rows.load(asked)
        among = self._search.among(asked, [], places)
        candidates = self._search.with_stored(asked, places, stored_ids)
        with_stored = [self._confirmed(asked, part, rows) for part in candidates]
        once = concatenate_pairs([self._confirmed(asked, part, rows) for part in in_pieces(among)])
        pairs = concatenate_pairs([*with_stored, once, _swapped(once)])
        order = np.argsort(pairs.id_a, kind="stable")
        own_ids = [row.id for row in asked]
        first, last = (np.searchsorted(pairs.id_a[order], own_ids, side) for side in _SIDES)
        chosen = [order[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        return [
            FoundPairs(own_id, pairs.id_b[i], pairs.distances[i], pairs.similarities[i], pairs.kinds[i])
            for own_id, i in zip(own_ids, chosen, strict=True)
        ]

    def find(self, asked: Sequence[AnswerRow], places: Places, rows: Neighbourhood) -> StoredPairs:
        """Return every duplicate pair of the asked rows, each once, the asked row first.

        Args:
            asked: canonical rows with a fingerprint, in the order of their ids.
            places: of the asked rows that have a sketch.
            rows: the loaded rows; the other rows of the pairs are added to them.
        """
        ids = np.array([row.id for row in asked], np.int64)
        found = []
        for which, others in self._search.with_stored(asked, places):
            # Two asked rows are candidates of each other: one pair of the two is enough.
            is_new = (ids[which] != others) & (~np.isin(others, ids) | (ids[which] < others))
            found.append(self._confirmed(asked, Candidates(which[is_new], others[is_new]), rows))
        return concatenate_pairs(found)

    def find_between(
        self,
        asked: Sequence[AnswerRow],
        which: NDArray[np.int64],
        ids: NDArray[np.int64],
        rows: Neighbourhood,
    ) -> StoredPairs:
        """Return those of p pairs of rows that are duplicate pairs, the asked row first.

        Args:
            asked: canonical rows.
            which: int64[p], positions of asked rows.
            ids: int64[p], ids of other canonical rows. Each pair occurs once.
            rows: the loaded rows; the other rows of the pairs are added to them.
        """
        order = np.argsort(ids, kind="stable")
        candidates = Candidates(which[order], ids[order])
        found = concatenate_pairs([self._confirmed(asked, part, rows) for part in in_pieces(candidates)])
        return found if self._has_sketches else found.only(found.distances <= self._radius)

    def _confirmed(
        self, asked: Sequence[AnswerRow], candidates: Candidates, rows: Neighbourhood
    ) -> StoredPairs:
        """Return the candidate pairs that are duplicates.

        The index of sketches may have a row by its former text that is gone, equals another row or has too
        little text now: it is in no pair.
        """
        stored = self._stored(candidates.ids, rows)
        takes_part = [r for r in stored.values() if r.copy_of is None and r.fingerprint is not None]
        candidates = candidates.of_rows(takes_part)
        chosen, which = np.unique(candidates.which, return_inverse=True)
        ids, others = np.unique(candidates.ids, return_inverse=True)
        ours, theirs = [asked[i] for i in chosen.tolist()], [stored[i] for i in ids.tolist()]
        values, other_values = fingerprints_of(ours), fingerprints_of(theirs)
        distances = np.bitwise_count(values[which] ^ other_values[others]).astype(np.int16)
        self._texts.trim(ours)
        self._texts.read(self._connection, [*ours, *theirs])
        self._texts.end_read(self._connection)
        left, right = self._texts.places(ours)[which], self._texts.places(theirs)[others]
        is_duplicate, scores, kinds = self._texts.confirm(left, right)
        if self._has_sketches:
            found = np.flatnonzero(is_duplicate)
            is_duplicate[found] = are_candidates(
                self._texts.sketches(), left[found], right[found], distances[found], self._radius
            )
        own_ids = np.array([row.id for row in ours], np.int64)
        pairs = StoredPairs(own_ids[which], candidates.ids, distances, scores, kinds).only(is_duplicate)
        rows.load(stored[i] for i in np.unique(pairs.id_b).tolist())
        return pairs

    def _stored(self, ids: NDArray[np.int64], rows: Neighbourhood) -> dict[int, AnswerRow]:
        """Return id -> row of those that are there."""
        distinct = np.unique(ids).tolist()
        stored = {i: rows[i] for i in distinct if i in rows}
        missing = [i for i in distinct if i not in stored]
        return stored | {
            row.id: row for row in neighbours.rows_of_ids(self._connection, self._store, missing)
        }


def oriented(pairs: StoredPairs, received: Callable[[int], Receipt]) -> StoredPairs:
    """Return the same pairs, each with the row first that was received first."""
    ids, places = np.unique(np.concatenate([pairs.id_a, pairs.id_b]), return_inverse=True)
    ranks = np.empty(ids.size, np.int64)
    ranks[sorted(range(ids.size), key=lambda place: received(int(ids[place])))] = np.arange(ids.size)
    a, b = np.split(ranks[places.reshape(-1)], 2)
    swapped = a > b
    return StoredPairs(
        np.where(swapped, pairs.id_b, pairs.id_a),
        np.where(swapped, pairs.id_a, pairs.id_b),
        pairs.distances,
        pairs.similarities,
        np.where(swapped, swapped_kinds(pairs.kinds), pairs.kinds),
    )


def _found_before(
    asked: Sequence[AnswerRow],
    since: Sequence[AnswerRow],
    before: Mapping[bytes, FoundPairs],
    void: NDArray[np.int64],
) -> StoredPairs:
    """Return the pairs of the asked rows that were found ahead and still count, each once.

    Args:
        asked: as for `PairSearch.find_after`.
        since: the same.
        before: the same.
        void: int64[v], ids of stored rows whose texts were others then.
    """
    parts = [_with_first(row.id, before[row.digest]) for row in asked if row.digest in before]
    found = concatenate_pairs(parts)
    numbers = -1 - np.minimum(found.id_b, -1)  # of rows that were searched at the same time
    written = np.zeros(numbers.max(initial=0) + 1, np.int64)
    for row in [*asked, *since]:
        own = before.get(row.digest)
        if own is not None and -1 - own.own_id < written.size:
            written[-1 - own.own_id] = row.id
    is_stored = found.id_b >= 0
    found = replace(found, id_b=np.where(is_stored, found.id_b, written[numbers]))
    # The searched row that is written first is in no pair until the other one is written, too.
    is_there = np.where(is_stored, ~np.isin(found.id_b, void), found.id_b > 0)
    is_second = ~is_stored & np.isin(found.id_b, [row.id for row in asked]) & (found.id_b < found.id_a)
    return found.only(is_there & ~is_second)


def _swapped(pairs: StoredPairs) -> StoredPairs:
    """Return the same pairs with their rows the other way round."""
    kinds = swapped_kinds(pairs.kinds)
    return StoredPairs(pairs.id_b, pairs.id_a, pairs.distances, pairs.similarities, kinds)


def _with_first(row_id: int, found: FoundPairs) -> StoredPairs:
    return StoredPairs(np.full(found.ids.size, row_id, np.int64), *found[1:])


def _missing(ids: NDArray[np.int64], rows: Neighbourhood) -> list[int]:
    return [row_id for row_id in np.unique(ids).tolist() if row_id not in rows]
