"""The duplicate pairs of some rows, with each other and with all that is stored.

The candidates of a search are compared in parts: their texts are read, compared with the texts of the asked
rows, and deleted from memory. So the memory depends on the number of asked rows and of confirmed pairs, never
on how many rows of the table share a phrase.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import ROWS_A_BATCH, CandidateTexts
from db_dedup.engines.embedded.neighbourhood import Neighbourhood
from db_dedup.engines.embedded.sharing import are_candidates, find_sharing_rows
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.candidates.postings import Postings, sharing_pairs
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.feature_sets import AskedFeatures
from db_dedup.flow.compare.kinds import swapped_kinds
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.rows.order import Receipt
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store import neighbours
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, find_near
from db_dedup.store.pairs import StoredPairs, concatenate_pairs

_PAIRS_A_PIECE: Final = 2_000_000
_ASKED_A_SEARCH: Final = 256
_SIDES: Final = ("left", "right")

Places = Mapping[int, int]
"""Id of an asked row -> position of its sketch among the texts."""


class _Candidates(NamedTuple):
    """p candidate pairs: int64[p] positions of asked rows, int64[p] ids of their candidates."""

    which: NDArray[np.int64]
    ids: NDArray[np.int64]

    def part(self, chosen: slice) -> "_Candidates":
        return _Candidates(self.which[chosen], self.ids[chosen])

    def of_rows(self, rows: Sequence[AnswerRow]) -> "_Candidates":
        """Return the pairs whose candidates are among some rows."""
        is_of_rows = np.isin(self.ids, [row.id for row in rows])
        return _Candidates(self.which[is_of_rows], self.ids[is_of_rows])


_NO_CANDIDATES: Final = _Candidates(np.empty(0, np.int64), np.empty(0, np.int64))


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
        self._connection, self._store, self._index, self._texts = connection, store, index, texts
        self._radius, self._has_sketches = watched.rule.radius, watched.rule.sketches
        self._rule = Rule(watched.setting).numbers

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
        of_new = self._among(new, [*known, *since], places) if new else _NO_CANDIDATES
        of_known = self._among(known, since_new, places) if since_new else _NO_CANDIDATES
        of_known = of_known.of_rows(since_new)
        if new:
            more = self.find(new, places, rows)
            pairs.append(more.only(~np.isin(more.id_b, late)))
        pairs += [self._confirmed(new, part, rows) for part in _pieces(of_new)]
        pairs += [self._confirmed(known, part, rows) for part in _pieces(of_known)]
        return concatenate_pairs(pairs)

    def find_ahead(self, asked: Sequence[AnswerRow]) -> list[FoundPairs]:
        """Return for each of some rows its duplicates among the stored rows and among these rows.

        Args:
            asked: their features are in memory. Their ids are distinct, and below zero.
        """
        placed = ((row.id, self._texts.place(row)) for row in asked)
        places = {row_id: place for row_id, place in placed if place is not None}
        rows = Neighbourhood()
        rows.load(asked)
        among = self._among(asked, [], places)
        with_stored = [self._confirmed(asked, part, rows) for part in self._candidates(asked, places)]
        once = concatenate_pairs([self._confirmed(asked, part, rows) for part in _pieces(among)])
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
        for which, others in self._candidates(asked, places):
            # Two asked rows are candidates of each other: one pair of the two is enough.
            is_new = (ids[which] != others) & (~np.isin(others, ids) | (ids[which] < others))
            found.append(self._confirmed(asked, _Candidates(which[is_new], others[is_new]), rows))
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
        candidates = _Candidates(which[order], ids[order])
        found = concatenate_pairs([self._confirmed(asked, part, rows) for part in _pieces(candidates)])
        return found if self._has_sketches else found.only(found.distances <= self._radius)

    # Candidates

    def _candidates(self, asked: Sequence[AnswerRow], places: Places) -> Iterator[_Candidates]:
        """Yield the candidate pairs in parts of bounded size; all pairs of a candidate are in one part."""
        near = self._near(asked)
        order = np.argsort(near.ids, kind="stable")
        near = _Candidates(near.which[order], near.ids[order])
        first = 0
        for sharing in self._sharing(asked, places):
            if sharing.ids.size:
                last = int(np.searchsorted(near.ids, sharing.ids.max(), "right"))
                yield from _pieces(_united(near.part(slice(first, last)), sharing))
                first = last
        yield from _pieces(_united(near.part(slice(first, None)), _NO_CANDIDATES))

    def _among(self, asked: Sequence[AnswerRow], since: Sequence[AnswerRow], places: Places) -> _Candidates:
        """Return the candidate pairs among the asked rows, each once, and of these with some other rows."""
        everyone = [*asked, *since]
        values, ids = _fingerprints(everyone), np.array([row.id for row in everyone], np.int64)
        near = [np.empty((0, 2), np.int64)]
        for first in range(0, len(asked), _ASKED_A_SEARCH):
            some = values[first : min(first + _ASKED_A_SEARCH, len(asked))]
            is_near = np.bitwise_count(some[:, None] ^ values[None, :]) <= self._radius
            near.append(np.argwhere(is_near) + np.array([first, 0]))
        if self._has_sketches:
            self._texts.read(self._connection, since)
            placed = ((row.id, self._texts.place(row)) for row in since)
            places = {**places, **{row_id: place for row_id, place in placed if place is not None}}
            sketched, sketches = self._asked_sketches(everyone, places)
            own = np.flatnonzero(sketched < len(asked))
            owners = np.repeat(np.arange(sketched.size), sketches.counts)
            postings = Postings.of(sketches.values, owners)
            pairs = sharing_pairs(sketches.take(own), postings, sketches.counts)
            near.append(np.stack([sketched[own][pairs[0]], sketched[pairs[1]]], axis=1))
        which, others = np.concatenate(near).T
        is_once = (others >= len(asked)) | (ids[which] < ids[others])
        return _united(_Candidates(which[is_once], ids[others[is_once]]), _NO_CANDIDATES)

    def _asked_sketches(
        self, asked: Sequence[AnswerRow], places: Places
    ) -> tuple[NDArray[np.int64], Sketches]:
        """Return (int64[s] positions of the asked rows that have a sketch, their sketches)."""
        sketched = np.array([i for i, row in enumerate(asked) if row.id in places], np.int64)
        own = np.array([places[asked[i].id] for i in sketched.tolist()], np.int64)
        return sketched, self._texts.sketches().take(own)

    def _near(self, asked: Sequence[AnswerRow]) -> _Candidates:
        """Return the candidates by SimHash blocks."""
        which, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        if self._index is not None:
            values = np.array([row.fingerprint for row in asked], np.uint64)
            for first in range(0, values.size, _ASKED_A_SEARCH):
                places, near, _ = self._index.find_near(values[first : first + _ASKED_A_SEARCH], self._radius)
                which.append(places + first)
                ids.append(near)
        else:
            looked_up = [
                Asked(value, block_values(value, self._radius))
                for value in (row.fingerprint or 0 for row in asked)
            ]
            found = find_near(self._connection, self._store, looked_up, self._radius)
            which.append(found.which)
            ids.append(found.ids)
        return _Candidates(np.concatenate(which), np.concatenate(ids))

    def _sharing(self, asked: Sequence[AnswerRow], places: Places) -> Iterator[_Candidates]:
        """Yield the candidates by sketches, in parts, in the order of their ids."""
        if not self._has_sketches:
            return
        sketched, asked_sketches = self._asked_sketches(asked, places)
        own = np.array([places[asked[i].id] for i in sketched.tolist()], np.int64)
        features = AskedFeatures.of(self._texts.features(), own, self._rule)
        found = find_sharing_rows(self._connection, self._store, asked_sketches, features, self._texts.index)
        for sharing in found:
            yield _Candidates(sketched[sharing.which], sharing.ids)

    # Confirmation

    def _confirmed(
        self, asked: Sequence[AnswerRow], candidates: _Candidates, rows: Neighbourhood
    ) -> StoredPairs:
        """Return the candidate pairs that are duplicates."""
        chosen, which = np.unique(candidates.which, return_inverse=True)
        ids, others = np.unique(candidates.ids, return_inverse=True)
        ours = [asked[i] for i in chosen.tolist()]
        stored = {i: rows[i] for i in ids.tolist() if i in rows}
        missing = [i for i in ids.tolist() if i not in stored]
        stored |= {row.id: row for row in neighbours.rows_of_ids(self._connection, self._store, missing)}
        theirs = [stored[i] for i in ids.tolist()]
        values, other_values = _fingerprints(ours), _fingerprints(theirs)
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


def _fingerprints(rows: Sequence[AnswerRow]) -> NDArray[np.uint64]:
    return np.array([row.fingerprint or 0 for row in rows], np.uint64)


def _united(one: _Candidates, other: _Candidates) -> _Candidates:
    """Return the pairs of both, each once, sorted by the ids of the candidates."""
    which, ids = np.concatenate([one.which, other.which]), np.concatenate([one.ids, other.ids])
    order = np.lexsort((which, ids))
    which, ids = which[order], ids[order]
    is_new = np.ones(ids.size, np.bool_)
    is_new[1:] = (ids[1:] != ids[:-1]) | (which[1:] != which[:-1])
    return _Candidates(which[is_new], ids[is_new])


def _pieces(candidates: _Candidates) -> Iterator[_Candidates]:
    """Yield the pairs in pieces of at most `ROWS_A_BATCH` candidates and about `_PAIRS_A_PIECE` pairs.

    Args:
        candidates: sorted by their ids.
    """
    starts = np.flatnonzero(np.diff(candidates.ids, prepend=candidates.ids[:1] - 1))
    first = 0
    while first < starts.size:
        within = np.searchsorted(starts, starts[first] + _PAIRS_A_PIECE, "right") - 1
        last = min(first + ROWS_A_BATCH, max(int(within), first + 1))
        end = int(starts[last]) if last < starts.size else None
        yield candidates.part(slice(int(starts[first]), end))
        first = last
