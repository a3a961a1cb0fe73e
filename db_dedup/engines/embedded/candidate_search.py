"""The candidate pairs of some rows, among each other and with all that is stored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import ROWS_A_BATCH, CandidateTexts
from db_dedup.engines.embedded.segment_sets import SegmentSets
from db_dedup.engines.embedded.sharing import find_sharing_rows
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.candidates.postings import Postings, sharing_pairs
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.feature_sets import AskedFeatures
from db_dedup.flow.compare.rule import Rule
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, find_near
from db_dedup.store.own_entries import NewEntries, OwnEntries
from db_dedup.store.segments import Generation

_PAIRS_A_PIECE: Final = 2_000_000
_ASKED_A_SEARCH: Final = 256

Places = Mapping[int, int]
"""Id of an asked row -> position of its sketch among the texts."""


class Candidates(NamedTuple):
    """p candidate pairs: int64[p] positions of asked rows, int64[p] ids of their candidates."""

    which: NDArray[np.int64]
    ids: NDArray[np.int64]

    def part(self, chosen: slice) -> "Candidates":
        """Return some of the pairs."""
        return Candidates(self.which[chosen], self.ids[chosen])

    def of_rows(self, rows: Sequence[AnswerRow]) -> "Candidates":
        """Return the pairs whose candidates are among some rows."""
        is_of_rows = np.isin(self.ids, [row.id for row in rows])
        return Candidates(self.which[is_of_rows], self.ids[is_of_rows])


NO_CANDIDATES: Final = Candidates(np.empty(0, np.int64), np.empty(0, np.int64))


class CandidateSearch:
    """Finds candidate pairs in the database, or in an index in memory.

    Attributes:
        new_entries: id of an asked row -> what the last search found is to be written of its sketch; a row
            that is not here needs all of it.
    """

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
        self.new_entries: dict[int, NewEntries] = {}

    def with_stored(
        self, asked: Sequence[AnswerRow], places: Places, own_ids: Mapping[int, int] | None = None
    ) -> Iterator[Candidates]:
        """Yield the candidate pairs in parts of bounded size; all pairs of a candidate are in one part.

        A candidate may be gone by now, be an exact duplicate of another row, or have too little text.

        Args:
            asked: rows with a fingerprint.
            places: of those that have a sketch.
            own_ids: id of an asked row -> id of the same row as it is stored. `new_entries` tells then what
                is to be written of their sketches.
        """
        near = self._near(asked)
        if self._has_sketches:
            sketched, sketches = self._asked_sketches(asked, places)
            own = np.array([places[asked[i].id] for i in sketched.tolist()], np.int64)
            features = AskedFeatures.of(self._texts.features(), self._texts.details(), own, self._rule)
            index, generation = self._texts.index, None
            entries = None
            if own_ids:
                stored_ids = [own_ids.get(asked[i].id, -1) for i in sketched.tolist()]
                entries = OwnEntries(sketches, np.array(stored_ids, np.int64))
            for sharing in find_sharing_rows(
                self._connection, self._store, sketches, features, index, entries
            ):
                generation = sharing.generation
                last = int(np.searchsorted(near.ids, sharing.ids.max(initial=0), "right"))
                before = self._left(near.part(slice(last)), sketched, features, generation)
                yield from in_pieces(_united(before, Candidates(sketched[sharing.which], sharing.ids)))
                near = near.part(slice(last, None))
            if entries is not None:
                of_asked = zip(sketched.tolist(), entries.new_entries(), strict=True)
                self.new_entries = {asked[i].id: new for i, new in of_asked if new is not None}
            near = self._left(near, sketched, features, generation)
        yield from in_pieces(_united(near, NO_CANDIDATES))

    def _left(
        self,
        near: Candidates,
        sketched: NDArray[np.int64],
        features: AskedFeatures,
        generation: Generation | None,
    ) -> Candidates:
        """Return the candidates that the sets of features in memory do not rule out.

        Args:
            near: the candidates.
            sketched: int64[s], positions of the asked rows that have a sketch.
            features: of these.
            generation: of the segments, beside which the sets are.
        """
        if generation is None:
            return near
        sets = SegmentSets(self._connection, self._store, generation, features, self._texts.index)
        has_sketch = np.isin(near.which, sketched)
        is_left = ~has_sketch
        which, ids = np.searchsorted(sketched, near.which[has_sketch]), near.ids[has_sketch]
        is_left[has_sketch] = ~sets.rule_out(which, ids)
        return Candidates(near.which[is_left], near.ids[is_left])

    def among(self, asked: Sequence[AnswerRow], since: Sequence[AnswerRow], places: Places) -> Candidates:
        """Return the candidate pairs among the asked rows, each once, and of these with some other rows."""
        everyone = [*asked, *since]
        values, ids = fingerprints_of(everyone), np.array([row.id for row in everyone], np.int64)
        near = [np.empty((0, 2), np.int64)]
        for first in range(0, len(asked), _ASKED_A_SEARCH):
            some = values[first : min(first + _ASKED_A_SEARCH, len(asked))]
            is_near = np.bitwise_count(some[:, None] ^ values[None, :]) <= self._radius
            near.append(np.argwhere(is_near) + np.array([first, 0]))
        if self._has_sketches:
            self._texts.read(self._connection, since)
            placed = ((row.id, self._texts.place(row.digest)) for row in since)
            places = {**places, **{row_id: place for row_id, place in placed if place is not None}}
            sketched, sketches = self._asked_sketches(everyone, places)
            own = np.flatnonzero(sketched < len(asked))
            owners = np.repeat(np.arange(sketched.size), sketches.counts)
            postings = Postings.of(sketches.values, owners)
            pairs = sharing_pairs(sketches.take(own), postings, sketches.counts)
            near.append(np.stack([sketched[own][pairs[0]], sketched[pairs[1]]], axis=1))
        which, others = np.concatenate(near).T
        is_once = (others >= len(asked)) | (ids[which] < ids[others])
        return _united(Candidates(which[is_once], ids[others[is_once]]), NO_CANDIDATES)

    def _asked_sketches(
        self, asked: Sequence[AnswerRow], places: Places
    ) -> tuple[NDArray[np.int64], Sketches]:
        """Return (int64[s] positions of the asked rows that have a sketch, their sketches)."""
        sketched = np.array([i for i, row in enumerate(asked) if row.id in places], np.int64)
        own = np.array([places[asked[i].id] for i in sketched.tolist()], np.int64)
        return sketched, self._texts.sketches().take(own)

    def _near(self, asked: Sequence[AnswerRow]) -> Candidates:
        """Return the candidates by SimHash blocks, sorted by their ids."""
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
        order = np.argsort(np.concatenate(ids), kind="stable")
        return Candidates(np.concatenate(which)[order], np.concatenate(ids)[order])


def fingerprints_of(rows: Sequence[AnswerRow]) -> NDArray[np.uint64]:
    """Return uint64[n]: the fingerprints of n rows, 0 of a row that has none."""
    return np.array([row.fingerprint or 0 for row in rows], np.uint64)


def _united(one: Candidates, other: Candidates) -> Candidates:
    """Return the pairs of both, each once, sorted by the ids of the candidates."""
    which, ids = np.concatenate([one.which, other.which]), np.concatenate([one.ids, other.ids])
    order = np.lexsort((which, ids))
    which, ids = which[order], ids[order]
    is_new = np.ones(ids.size, np.bool_)
    is_new[1:] = (ids[1:] != ids[:-1]) | (which[1:] != which[:-1])
    return Candidates(which[is_new], ids[is_new])


def in_pieces(candidates: Candidates) -> Iterator[Candidates]:
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
