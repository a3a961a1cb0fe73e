"""Are these texts duplicates? The look-up of records, with the rule of the stored recipe."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.batches import batches
from db_dedup.engines.embedded.meeting import find_meeting
from db_dedup.engines.embedded.queued import Queued, pair_similarities
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import Fingerprinter, row_fingerprints
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.candidates import block_values
from db_dedup.records import CheckResult, Match, Record, RowKey, SourceRow
from db_dedup.store.bands import put_bands
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import Asked, StoredRow, find_near, read_classes
from db_dedup.store.neighbours import heads_of
from db_dedup.store.source import Source
from db_dedup.store.verdicts import DigestPair, digest_pair, rejected_among

_RECORDS_A_ROUND: Final = 256

_Candidate = tuple[int, StoredRow]
"""Place of a record, a row that it may duplicate."""

_Scores = dict[tuple[int, int], float | None]
"""(place of a record, id of a class that it duplicates) -> similarity, None where none is asked for."""


class Lookup:
    """Checks records against the stored rows of one table."""

    def __init__(self, watched: WatchedTable, store: FingerprintStore, source: Source) -> None:
        self._watched = watched
        self._store = store
        self._source = source
        self._fingerprinter = Fingerprinter(watched)

    def row_key_of(self, given: RowKey) -> str:
        """The row key that a caller means; InvalidArgumentError where the table can have no such key."""
        return self._source.row_key_of(given)

    def check(
        self,
        connection: Connection,
        records: Sequence[Record],
        source_connection: Connection | None = None,
        queued: Queued | None = None,
        own_keys: Sequence[str | None] | None = None,
    ) -> list[CheckResult]:
        """For each record the stored rows that a full scan would pair with it, if it were the latest row.

        The records are not compared with each other. So many statements are run for some hundred records as
        for one, but for long lists of values, which are cut.

        Args:
            connection: leads to our tables.
            records: n records.
            source_connection: leads to the user's rows; left out, the first one does.
            queued: rows that are judged as they are now, and not as they are stored.
            own_keys: for each record the row key under which it is stored or will be, None where it has none;
                no row duplicates itself.
        """
        found: list[CheckResult] = []
        theirs = source_connection or connection
        own = own_keys or [None] * len(records)
        for some in batches(zip(records, own, strict=True), _RECORDS_A_ROUND, lambda _: 0):
            rows = self._source.rows_from(theirs, [record for record, _ in some])
            round_ = _Round(self, connection, theirs, rows, [key for _, key in some], queued)
            found += round_.run()
        return found

    def read_queued(self, connection: Connection, row_keys: Sequence[str]) -> Queued:
        """Rows of the queue, as they are now."""
        rows = list(self._source.read_rows(connection, row_keys))
        stored = self._store.find_rows(connection, row_keys)
        known = [stored[row.row_key].digest if row.row_key in stored else None for row in rows]
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows], known)
        return Queued(frozenset(row_keys), rows, done)

    def put(self, connection: Connection, records: Mapping[str, Record]) -> None:
        """Store the fingerprints of records under new row keys, so that they are found from now on.

        Which pairs they make is left to the worker. What is stored already stays as it is.
        """
        there = self._store.find_rows(connection, list(records))
        new = [row_key for row_key in records if row_key not in there]
        keyless = self._source.rows_from(connection, [records[row_key] for row_key in new])
        rows = [replace(row, row_key=row_key) for row_key, row in zip(new, keyless, strict=True)]
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])
        self._store.insert_rows(connection, row_fingerprints(rows, done))
        if self._watched.rule.bands:
            stored = self._store.find_rows(connection, new)
            places = np.flatnonzero(done.has_fingerprint).tolist()
            put_bands(connection, self._store, {stored[new[i]].id: done.sketches.bytes_of(i) for i in places})


class _Round:
    """Some records, on their way through."""

    def __init__(
        self,
        lookup: Lookup,
        connection: Connection,
        source_connection: Connection,
        rows: Sequence[SourceRow],
        own_keys: Sequence[str | None],
        queued: Queued | None,
    ) -> None:
        self._watched, self._store, self._source = lookup._watched, lookup._store, lookup._source
        self._fingerprinter = lookup._fingerprinter
        self._connection, self._source_connection = connection, source_connection
        self._rows, self._own_keys, self._queued = rows, own_keys, queued
        self._done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])

    def run(self) -> list[CheckResult]:
        """The results, in the order of the records."""
        found = self._find_stored()
        if self._queued is not None:
            for matches, more, own in zip(found, self._find_queued(), self._own_keys, strict=True):
                matches.extend(match for match in more if match.row_key != own)
        return [
            CheckResult(sorted(matches, key=_nearest_first), not has_fingerprint and not matches)
            for matches, has_fingerprint in zip(found, self._done.has_fingerprint.tolist(), strict=True)
        ]

    def _find_queued(self) -> list[list[Match]]:
        assert self._queued is not None  # noqa: S101 - the caller has looked
        digests = {*self._done.digests, *self._queued.done.digests}
        return self._queued.matches(self._watched, self._rows, self._done, self._rejected(digests))

    def _find_stored(self) -> list[list[Match]]:
        equal = self._find_equal()
        near = self._find_near()
        for distances, ids in zip(near, equal, strict=True):
            distances.update(dict.fromkeys(ids, 0))
        candidates = self._candidates(near)
        asked = [(one, row) for one, row in _speakers(candidates) if row.class_id not in equal[one]]
        scores = self._confirm(self._without_rejected(asked))
        scores |= {(one, class_id): 1.0 for one, ids in enumerate(equal) for class_id in ids}
        found: list[list[Match]] = [[] for _ in self._rows]
        for one, row in candidates:
            if (one, row.class_id) in scores:
                distance, score = near[one][row.class_id], scores[one, row.class_id]
                found[one].append(Match(row.row_key, distance, score, row.group_key))
        return found

    def _find_equal(self) -> list[list[int]]:
        """For each record the ids of the rows of the same text that are no copies."""
        wanted = sorted({digest for digest in self._done.digests if digest != NOTHING_TO_SAY})
        ids: dict[bytes, list[int]] = defaultdict(list)
        for row in heads_of(self._connection, self._store, wanted):
            ids[row.digest].append(row.id)
        return [ids.get(digest, []) for digest in self._done.digests]

    def _find_near(self) -> list[dict[int, int]]:
        """For each record id -> distance in bits of the candidates, whichever way they were proposed."""
        near: list[dict[int, int]] = [{} for _ in self._rows]
        records = np.flatnonzero(self._done.has_fingerprint)
        fingerprints, radius = self._done.fingerprints[records], self._watched.rule.radius
        asked = [Asked(value, block_values(value, radius)) for value in fingerprints.tolist()]
        found = find_near(self._connection, self._store, asked, radius)
        parts = [(found.which, found.ids, found.distances)]
        if self._watched.rule.bands and records.size:
            for met in find_meeting(self._connection, self._store, self._done.sketches.take(records)):
                distances = np.bitwise_count(met.fingerprints ^ fingerprints[met.which])
                parts.append((met.which, met.ids, distances.astype(np.int64)))
        for which, ids, distances in parts:
            triples = zip(records[which].tolist(), ids.tolist(), distances.tolist(), strict=True)
            for one, row_id, distance in triples:
                near[one][row_id] = distance
        return near

    def _candidates(self, near: Sequence[Mapping[int, int]]) -> list[_Candidate]:
        """The rows of the classes that are near each record, but those that are judged in another way."""
        passed_over = self._queued.passed_over if self._queued is not None else frozenset()
        classes: dict[int, list[StoredRow]] = defaultdict(list)
        for row in read_classes(self._connection, self._store, sorted({i for ids in near for i in ids})):
            if row.row_key not in passed_over:
                classes[row.class_id].append(row)
        return [
            (one, row)
            for one, ids in enumerate(near)
            for class_id in ids
            for row in classes[class_id]
            if row.row_key != self._own_keys[one]
        ]

    def _without_rejected(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        """Those that people have not labelled as no duplicates of the record's text."""
        digests = self._done.digests
        rejected = self._rejected(
            {digest for one, row in candidates for digest in (digests[one], row.digest)}
        )
        return [
            (one, row) for one, row in candidates if digest_pair(digests[one], row.digest) not in rejected
        ]

    def _rejected(self, digests: Collection[bytes]) -> set[DigestPair]:
        return rejected_among(self._connection, self._store.tables, self._store.table_id, digests)

    def _confirm(self, candidates: Sequence[_Candidate]) -> _Scores:
        """The candidates that are duplicates.

        Their texts are read again; a row that has changed since it was stored is left to the next scan.
        """
        if MEASURE_OF[self._watched.rule.similarity] is None and not self._watched.within:
            return {(one, row.class_id): None for one, row in candidates}
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
        """The same by the texts of these candidates."""
        stored = {candidate.row_key: candidate for candidate in candidates}
        rows = list(self._source.read_rows(self._source_connection, list(stored)))
        known = [stored[row.row_key].digest for row in rows]
        others = self._fingerprinter.fingerprint(
            [r.values for r in rows], [r.within for r in rows], known, compares_known=True
        )
        pairs = [
            (one, place)
            for place, row in enumerate(rows)
            if known[place] == others.digests[place]
            for one in records_of[row.row_key]
            if row.within == self._rows[one].within
        ]
        left, right = np.array(pairs, np.int32).reshape(-1, 2).T
        measure, threshold = MEASURE_OF[self._watched.rule.similarity], self._watched.rule.threshold
        scores = pair_similarities(measure, self._done, others, left, right)
        return {
            (one, stored[rows[place].row_key].class_id): score
            for (one, place), score in zip(pairs, scores, strict=True)
            if score is None or score >= threshold
        }


def _speakers(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """For each record one row of each class: the head, or where it is passed over another row of its text."""
    heads_last = sorted(candidates, key=lambda candidate: candidate[1].id == candidate[1].class_id)
    return list({(one, row.class_id): (one, row) for one, row in heads_last}.values())


def _nearest_first(match: Match) -> tuple[int, float, str]:
    return match.distance, -(match.similarity or 0.0), match.row_key
