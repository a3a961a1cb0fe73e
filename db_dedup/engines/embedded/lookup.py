"""Check records: find the stored rows that they duplicate by the rule of the stored recipe."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import isnan
from typing import Final

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.batches import batches
from db_dedup.dialects.keys import require_key
from db_dedup.engines.embedded.near_rows import NearRows
from db_dedup.engines.embedded.queued import Queued
from db_dedup.engines.embedded.readiness import make_ready
from db_dedup.engines.embedded.reserved import (
    digests_of,
    make_reservations_ready,
    pack_record,
    reserved_matches,
)
from db_dedup.engines.embedded.segment_sets import SegmentSets
from db_dedup.engines.embedded.sharing import are_candidates, find_sharing_rows
from db_dedup.flow.candidates.blocks import block_values
from db_dedup.flow.compare.feature_sets import AskedFeatures
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.pipeline import Fingerprinter, joined_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.stored_rows import row_fingerprints
from db_dedup.records import CheckResult, Match, Record, Reservation, RowKey, SourceRow
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.records.forms import form_of_pair
from db_dedup.records.kinds import EXACT_DUPLICATES, NO_KIND, PairKind
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import require_keys
from db_dedup.store.labels import rejected_among
from db_dedup.store.lookup import Asked, StoredRow, find_near, read_classes
from db_dedup.store.segment_lookup import IndexMemory
from db_dedup.store.sketches import put_sketches
from db_dedup.store.source import Source

_RECORDS_A_ROUND: Final = 256

_Candidate = tuple[int, StoredRow]
"""Position of a record, a row that it may duplicate."""

_Scores = dict[tuple[int, int], tuple[float | None, PairKind]]
"""(position of a record, id of a class that it duplicates) -> (similarity, None if there is no measure; the
kind of the pair, in which the record is the first row)."""


class EmbeddedLookup:
    """Checks records against the stored rows of one table. See `engines.base.Lookup` for the methods."""

    def __init__(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> None:
        self._watched = watched
        self._store = store
        self._source = source
        self._fingerprinter = Fingerprinter(recipe)
        self._index = IndexMemory()
        # `WatchedTable.rule` is computed again at each access, so keep it.
        self._rule, self._preset = Rule(watched.setting), watched.rule

    def row_key_of(self, given: RowKey) -> str:
        """Return a caller's key as a row key."""
        row_key = self._source.row_key_of(given)
        require_key(self._source.key_columns, row_key)
        return row_key

    def check(
        self,
        connection: Connection,
        records: Sequence[Record],
        source_connection: Connection | None = None,
        queued: Queued | None = None,
        own_keys: Sequence[str | None] | None = None,
        reserved: Sequence[Reservation] = (),
    ) -> list[CheckResult]:
        """Return for each record the stored rows that a full scan would pair with it as the latest row.

        A few hundred records take as many statements as one, unless a list of values is too long for one
        statement and is divided.
        """
        found: list[CheckResult] = []
        theirs = source_connection or connection
        own = own_keys or [None] * len(records)
        for some in batches(zip(records, own, strict=True), _RECORDS_A_ROUND, lambda _: 0):
            rows = self._source.rows_from(theirs, [record for record, _ in some])
            round_ = _Round(self, connection, theirs, rows, [key for _, key in some], queued)
            found += round_.run(reserved)
        return found

    def pairs_among(
        self, connection: Connection, records: Sequence[Record], source_connection: Connection
    ) -> list[tuple[int, int]]:
        """Return the pairs (i, j), i < j, of positions of records that are duplicates of each other.

        Each record is compared with each other one, as rows of the queue are.
        """
        rows = self._source.rows_from(source_connection, records)
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])
        numbered = [row._replace(row_key=str(i)) for i, row in enumerate(rows)]
        store = self._store
        rejected = rejected_among(connection, store.tables, store.table_id, set(done.digests))
        found = Queued(frozenset(), numbered, done).matches(
            self._watched, rows, done, rejected, [None] * len(rows)
        )
        pairs = ((int(match.row_key), i) for i, matches in enumerate(found) for match in matches)
        return sorted(pair for pair in pairs if pair[0] < pair[1])

    def make_ready(self) -> None:
        """Load and compile what checks need; call it before the lock of the table is taken."""
        make_ready(self._watched, self._fingerprinter)
        make_reservations_ready(self._watched, self._fingerprinter)

    def pack(self, connection: Connection, record: Record, others: Sequence[Reservation]) -> bytes:
        """Return what a record is compared by while it is reserved, without its text."""
        (row,) = self._source.rows_from(connection, [record])
        done = self._fingerprinter.fingerprint([row.values], [row.within])
        return pack_record(done, row.within, others)

    def read_queued(self, connection: Connection, row_keys: Sequence[str]) -> Queued:
        """Return the rows of the queue as they are now."""
        rows = list(self._source.read_rows(connection, row_keys))
        stored = self._store.find_rows(connection, row_keys)
        known = [stored[row.row_key].digest if row.row_key in stored else None for row in rows]
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows], known)
        return Queued(frozenset(row_keys), rows, done)

    def put(self, connection: Connection, records: Mapping[str, Record]) -> None:
        """Store the fingerprints of records under new row keys, so that later checks find them.

        The worker finds their pairs. A row key that is stored already is not changed.
        """
        require_keys(connection, self._source, list(records))
        there = self._store.find_rows(connection, list(records))
        new = [row_key for row_key in records if row_key not in there]
        keyless = self._source.rows_from(connection, [records[row_key] for row_key in new])
        rows = [row._replace(row_key=row_key) for row_key, row in zip(new, keyless, strict=True)]
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])
        self._store.insert_rows(connection, row_fingerprints(rows, done, with_sets=True))
        if self._preset.sketches:
            stored = self._store.find_rows(connection, new)
            places = np.flatnonzero(done.has_fingerprint).tolist()
            put_sketches(
                connection, self._store, {stored[new[i]].id: done.sketches.bytes_of(i) for i in places}
            )


class _Round:
    """The check of some records, with one set of statements for all of them."""

    def __init__(
        self,
        lookup: EmbeddedLookup,
        connection: Connection,
        source_connection: Connection,
        rows: Sequence[SourceRow],
        own_keys: Sequence[str | None],
        queued: Queued | None,
    ) -> None:
        self._watched, self._store, self._source = lookup._watched, lookup._store, lookup._source
        self._fingerprinter, self._index = lookup._fingerprinter, lookup._index
        self._rule, self._preset = lookup._rule, lookup._preset
        self._connection, self._source_connection = connection, source_connection
        self._rows, self._own_keys, self._queued = rows, own_keys, queued
        self._done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])

    def run(self, reserved: Sequence[Reservation]) -> list[CheckResult]:
        """Return the results, in the order of the records."""
        found = self._find_stored()
        if reserved:
            rejected = self._rejected({*self._done.digests, *digests_of(reserved)})
            others = reserved_matches(self._watched, self._rows, self._done, reserved, rejected)
            found = [stored + like for stored, like in zip(found, others, strict=True)]
        if self._queued is not None:
            for matches, more, own in zip(found, self._find_queued(), self._own_keys, strict=True):
                matches.extend(match for match in more if match.row_key != own)
        return [
            CheckResult(sorted(matches, key=_nearest_first), not has_fingerprint and not matches)
            for matches, has_fingerprint in zip(found, self._done.has_fingerprint.tolist(), strict=True)
        ]

    def _find_queued(self) -> list[list[Match]]:
        assert self._queued is not None  # noqa: S101 - `run` checks it
        digests = {*self._done.digests, *self._queued.done.digests}
        rejected = self._rejected(digests)
        return self._queued.matches(self._watched, self._rows, self._done, rejected, self._own_keys)

    def _find_stored(self) -> list[list[Match]]:
        candidates, equal = self._candidates(self._find_near())
        asked = [(one, row) for one, row in _one_of_each_class(candidates) if row.class_id not in equal[one]]
        scores = self._without_rejected(asked, self._confirm(asked))
        copies = 1.0, EXACT_DUPLICATES
        scores |= {(one, class_id): copies for one, ids in enumerate(equal) for class_id in ids}
        found: list[list[Match]] = [[] for _ in self._rows]
        for one, row in candidates:
            if (one, row.class_id) in scores:
                score, kind = scores[one, row.class_id]
                part = kind.part_of(self._own_keys[one], row.row_key)
                found[one].append(
                    Match(
                        row.row_key,
                        self._distance(one, row),
                        score,
                        row.group_key,
                        kind.kind,
                        part,
                        kind.other_place,
                        form_of_pair(self._done.form(one), row.form),
                    )
                )
        return found

    def _distance(self, one: int, row: StoredRow) -> int:
        """Return in how many bits the fingerprints differ; 0 for an equal text that has none."""
        if row.fingerprint is None:
            return 0
        return (int(self._done.fingerprints[one]) ^ row.fingerprint).bit_count()

    def _find_near(self) -> NearRows:
        """Return the rows that may be candidates of each record."""
        records = np.flatnonzero(self._done.has_fingerprint)
        fingerprints, radius = self._done.fingerprints[records], self._preset.radius
        asked = [Asked(value, block_values(value, radius)) for value in fingerprints.tolist()]
        near = find_near(self._connection, self._store, asked, radius)
        found, generation = NearRows(len(self._rows)), None
        found.add(records[near.which], near.ids)
        if self._preset.sketches and records.size:
            features = AskedFeatures.of(self._done.features, self._done.details, records, self._rule.numbers)
            sketches = self._done.sketches.take(records)
            place = self._connection, self._store
            for sharing in find_sharing_rows(*place, sketches, features, self._index):
                found.add(records[sharing.which], sharing.ids)
                generation = sharing.generation
            if generation is not None:
                sets = SegmentSets(*place, generation, features, self._index)
                is_out = ~sets.allow(near.which, near.ids)
                found.rule_out(records[near.which[is_out]], near.ids[is_out], generation)
        return found

    def _candidates(self, near: NearRows) -> tuple[list[_Candidate], list[set[int]]]:
        """Read the classes of the rows that may be candidates, and of equal texts.

        Returns:
            (the rows of the candidates' classes, without those that are compared as queued rows; for each
            record the ids of the classes with the same text).
        """
        digests = self._done.digests
        wanted = sorted({digest for digest in digests if digest != NO_FEATURES_DIGEST})
        rows = read_classes(self._connection, self._store, near.all_ids(), wanted)
        passed_over = self._queued.passed_over if self._queued is not None else frozenset()
        classes: dict[int, list[StoredRow]] = defaultdict(list)
        of_digest: dict[bytes, set[int]] = {digest: set() for digest in wanted}
        for row in rows:
            if row.digest in of_digest:
                of_digest[row.digest].add(row.class_id)
            if row.row_key not in passed_over:
                classes[row.class_id].append(row)
        equal = [of_digest.get(digest, set()) for digest in digests]
        candidates = [
            (one, row)
            for one, ids in enumerate(near.left(rows))
            for class_id in ids | equal[one]
            for row in classes[class_id]
            if row.row_key != self._own_keys[one]
        ]
        return candidates, equal

    def _without_rejected(self, candidates: Sequence[_Candidate], scores: _Scores) -> _Scores:
        """Return the scores of those that people have not labelled as no duplicates of the record's text.

        Most checks find no duplicate, and ask for no label.
        """
        digests = self._done.digests
        pairs = {
            (one, row.class_id): digest_pair(digests[one], row.digest)
            for one, row in candidates
            if (one, row.class_id) in scores
        }
        rejected = self._rejected({digest for pair in pairs.values() for digest in pair}) if pairs else set()
        return {which: scores[which] for which, pair in pairs.items() if pair not in rejected}

    def _rejected(self, digests: Collection[bytes]) -> set[DigestPair]:
        return rejected_among(self._connection, self._store.tables, self._store.table_id, digests)

    def _confirm(self, candidates: Sequence[_Candidate]) -> _Scores:
        """Return the similarities of the candidates that are duplicates.

        Their texts are read again. A row that has changed since it was stored is left out: the worker or the
        next scan compares it.
        """
        if self._rule.measure is None and not self._watched.within and not self._preset.sketches:
            near = [(one, row) for one, row in candidates if self._distance(one, row) <= self._preset.radius]
            return {(one, row.class_id): (None, NO_KIND) for one, row in near}
        records_of: dict[str, list[int]] = defaultdict(list)
        for one, row in candidates:
            records_of[row.row_key].append(one)
        rows = {row.row_key: row for _, row in candidates}
        scores: _Scores = {}
        for some in self._source.batches(rows.values()):
            scores |= self._confirm_read(some, records_of)
        return scores

    def _confirm_read(
        self, candidates: Sequence[StoredRow], records_of: Mapping[str, Sequence[int]]
    ) -> _Scores:
        """Return the similarities of those of these candidates that are duplicates, from their texts."""
        stored = {candidate.row_key: candidate for candidate in candidates}
        rows = list(self._source.read_rows(self._source_connection, list(stored)))
        known = [stored[row.row_key].digest for row in rows]
        others = self._fingerprinter.fingerprint(
            [r.values for r in rows], [r.within for r in rows], known, compares_known=True
        )
        if self._queued is not None:
            digests = {row.row_key: digest for row, digest in zip(rows, others.digests, strict=True)}
            self._queued.written_since.update(k for k, row in stored.items() if digests.get(k) != row.digest)
        pairs = [
            (one, place)
            for place, row in enumerate(rows)
            if known[place] == others.digests[place]
            for one in records_of[row.row_key]
        ]
        within = [row.within for row in [*self._rows, *rows]]
        left, right = np.array(pairs, np.int32).reshape(-1, 2).T
        both = joined_rows([self._done, others]).compared(within)
        right = right + np.int32(len(self._rows))
        are_duplicates, scores, kinds = self._rule.confirm(both, left, right)
        distances = np.array(
            [self._distance(one, stored[rows[place].row_key]) for one, place in pairs], np.int64
        )
        are_duplicates &= are_candidates(both.sketches, left, right, distances, self._preset.radius)
        columns = (column.tolist() for column in (are_duplicates, scores, kinds))
        return {
            (one, stored[rows[place].row_key].class_id): (
                None if isnan(score) else score,
                PairKind.of(kind),
            )
            for (one, place), is_duplicate, score, kind in zip(pairs, *columns, strict=True)
            if is_duplicate
        }


def _one_of_each_class(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return for each record one row of each class: the canonical row if it is among the candidates."""
    canonical_last = sorted(candidates, key=lambda candidate: candidate[1].id == candidate[1].class_id)
    return list({(one, row.class_id): (one, row) for one, row in canonical_last}.values())


def _nearest_first(match: Match) -> tuple[int, float, str]:
    return match.distance, -(match.similarity or 0.0), match.row_key
