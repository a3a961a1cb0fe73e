"""Is this text a duplicate? The one-row look-up, with the rule of the stored recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.meeting import find_meeting
from db_dedup.engines.embedded.queued import Queued, similarities_with
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter, row_fingerprints
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.candidates import block_values
from db_dedup.flow.sketches import Sketches
from db_dedup.records import Match, SourceRow
from db_dedup.store.bands import put_bands
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.lookup import StoredRow, find_by_digest, find_near, read_classes
from db_dedup.store.source import Source
from db_dedup.store.verdicts import digest_pair, rejected_among


@dataclass(frozen=True)
class CheckResult:
    """What a check found, nearest first; `too_little_text` says that nothing could be judged."""

    matches: list[Match]
    too_little_text: bool


class Lookup:
    """Checks records against the stored rows of one table."""

    def __init__(self, watched: WatchedTable, store: FingerprintStore, source: Source) -> None:
        self._watched = watched
        self._store = store
        self._source = source
        self._fingerprinter = Fingerprinter(watched)

    def check(
        self,
        connection: Connection,
        record: Mapping[str, object],
        source_connection: Connection | None = None,
        queued: Queued | None = None,
    ) -> CheckResult:
        """Stored rows that a full scan would pair with this record, if it were the latest row.

        Args:
            connection: leads to our tables.
            record: column name -> value.
            source_connection: leads to the user's rows; left out, the first one does.
            queued: rows that are judged as they are now, and not as they are stored.
        """
        row = self._source.row_from(source_connection or connection, record)
        done = self._fingerprinter.fingerprint([row.values], [row.within])
        matches = self._find_stored(connection, row, done, source_connection or connection, queued)
        if queued is not None:
            rejected = self._rejected_with(connection, done.digests[0], queued.done.digests)
            matches += queued.matches(self._watched, row, done, rejected)
        is_too_little = not done.has_fingerprint[0] and not matches
        return CheckResult(sorted(matches, key=_nearest_first), is_too_little)

    def read_queued(
        self, connection: Connection, row_keys: Sequence[str], own_key: str | None = None
    ) -> Queued:
        """Rows of the queue, as they are now; the row of the own key counts as gone."""
        others = [row_key for row_key in row_keys if row_key != own_key]
        rows = list(self._source.read_rows(connection, others))
        stored = self._store.find_rows(connection, row_keys)
        known = [stored[row.row_key].digest if row.row_key in stored else None for row in rows]
        done = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows], known)
        gone = frozenset() if own_key is None else frozenset([own_key])
        return Queued(frozenset(row_keys) | gone, rows, done)

    def put(self, connection: Connection, row_key: str, record: Mapping[str, object]) -> None:
        """Store the fingerprint of a record under a new row key, so that it is found from now on; which pairs
        it makes is left to the worker."""
        if self._store.find_rows(connection, [row_key]):
            return
        row = replace(self._source.row_from(connection, record), row_key=row_key)
        done = self._fingerprinter.fingerprint([row.values], [row.within])
        self._store.insert_rows(connection, row_fingerprints([row], done))
        if self._watched.rule.bands and done.has_fingerprint[0]:
            (stored,) = self._store.find_rows(connection, [row_key]).values()
            put_bands(connection, self._store, {stored.id: done.sketches.bytes_of(0)})

    def _find_stored(
        self,
        connection: Connection,
        row: SourceRow,
        done: FingerprintedRows,
        source_connection: Connection,
        queued: Queued | None,
    ) -> list[Match]:
        passed_over = queued.passed_over if queued is not None else frozenset()
        equal = self._find_equal(connection, done.digests[0])
        if not done.has_fingerprint[0]:
            copies = read_classes(connection, self._store, equal)
            return [Match(c.row_key, 0, 1.0, c.group_key) for c in copies if c.row_key not in passed_over]
        near = self._find_near(connection, int(done.fingerprints[0]), done.sketches)
        near |= dict.fromkeys(equal, 0)
        classes = read_classes(connection, self._store, list(near))
        stored = [r for r in classes if r.row_key not in passed_over]
        # Of each class the head speaks, or where that is passed over another row of the same text.
        speakers = {r.class_id: r for r in sorted(stored, key=lambda r: r.id == r.class_id)}
        candidates = [r for r in speakers.values() if r.class_id not in equal]
        candidates = self._without_rejected(connection, done.digests[0], candidates)
        confirmed = self._confirm(source_connection, row, done, candidates)
        confirmed |= dict.fromkeys(equal, 1.0)
        return [
            Match(r.row_key, near[r.class_id], confirmed[r.class_id], r.group_key)
            for r in stored
            if r.class_id in confirmed
        ]

    def _find_equal(self, connection: Connection, digest: bytes) -> list[int]:
        return [] if digest == NOTHING_TO_SAY else find_by_digest(connection, self._store, digest)

    def _without_rejected(
        self, connection: Connection, digest: bytes, candidates: Sequence[StoredRow]
    ) -> list[StoredRow]:
        """Those that nobody has said to be no duplicate of this text."""
        rejected = self._rejected_with(connection, digest, [candidate.digest for candidate in candidates])
        return [candidate for candidate in candidates if candidate.digest not in rejected]

    def _rejected_with(self, connection: Connection, digest: bytes, others: Sequence[bytes]) -> set[bytes]:
        """Those of the other texts that somebody has said to be no duplicate of this one."""
        tables, table_id = self._store.tables, self._store.table_id
        rejected = rejected_among(connection, tables, table_id, {digest, *others})
        return {other for other in others if digest_pair(digest, other) in rejected}

    def _find_near(self, connection: Connection, fingerprint: int, sketch: Sketches) -> dict[int, int]:
        """id -> distance in bits of the candidates, whichever way they were proposed."""
        radius = self._watched.rule.radius
        near = find_near(connection, self._store, block_values(fingerprint, radius), fingerprint, radius)
        if self._watched.rule.bands:
            for met in find_meeting(connection, self._store, sketch):
                distances = np.bitwise_count(met.fingerprints ^ np.uint64(fingerprint))
                near |= zip(met.ids.tolist(), distances.tolist(), strict=True)
        return near

    def _confirm(
        self, connection: Connection, row: SourceRow, done: FingerprintedRows, candidates: Sequence[StoredRow]
    ) -> dict[int, float | None]:
        """id of the class -> similarity of the candidates that are duplicates, None where none is asked for.

        Their texts are read again; a row that has changed since it was stored is left to the next scan.
        """
        measure = MEASURE_OF[self._watched.rule.similarity]
        if not candidates:
            return {}
        if measure is None and not self._watched.within:
            return {candidate.class_id: None for candidate in candidates}
        confirmed: dict[int, float | None] = {}
        for some in self._source.batches(candidates):
            confirmed |= self._confirm_read(connection, row, done, some)
        return confirmed

    def _confirm_read(
        self, connection: Connection, row: SourceRow, done: FingerprintedRows, candidates: Sequence[StoredRow]
    ) -> dict[int, float | None]:
        """The same by the texts of these candidates."""
        ids = {candidate.row_key: candidate for candidate in candidates}
        rows = list(self._source.read_rows(connection, list(ids)))
        stored = [ids[r.row_key].digest for r in rows]
        others = self._fingerprinter.fingerprint(
            [r.values for r in rows], [r.within for r in rows], stored, compares_known=True
        )
        is_fresh = [before == now for before, now in zip(stored, others.digests, strict=True)]
        agrees = [r.within == row.within for r in rows]
        scores = similarities_with(MEASURE_OF[self._watched.rule.similarity], done, others)
        threshold = self._watched.rule.threshold
        return {
            ids[r.row_key].class_id: score
            for r, score, fresh, agree in zip(rows, scores, is_fresh, agrees, strict=True)
            if fresh and agree and (score is None or score >= threshold)
        }


def _nearest_first(match: Match) -> tuple[int, float, str]:
    return match.distance, -(match.similarity or 0.0), match.row_key
