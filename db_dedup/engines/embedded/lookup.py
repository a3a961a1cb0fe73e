"""Is this text a duplicate? The one-row look-up, with the rule of the stored recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import NOTHING_TO_SAY, FingerprintedRows, Fingerprinter
from db_dedup.flow.candidates import block_values
from db_dedup.flow.features import concatenate_features
from db_dedup.flow.similarity import similarities
from db_dedup.records import Match, SourceRow
from db_dedup.store.bands import find_sharing
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
    ) -> CheckResult:
        """Stored rows that a full scan would pair with this record, if it were the latest row.

        Args:
            connection: leads to our tables.
            record: column name -> value.
            source_connection: leads to the user's rows; left out, the first one does.
        """
        row = self._source.row_from(record)
        done = self._fingerprinter.fingerprint([row.values], [row.within])
        equal = self._find_equal(connection, done.digests[0])
        if not done.has_fingerprint[0]:
            copies = read_classes(connection, self._store, equal)
            matches = [Match(copy.row_key, 0, 1.0, copy.group_key) for copy in copies]
            return CheckResult(sorted(matches, key=_nearest_first), too_little_text=not matches)
        near = self._find_near(connection, int(done.fingerprints[0]), done.sketches)
        near |= dict.fromkeys(equal, 0)
        stored = read_classes(connection, self._store, list(near))
        candidates = [r for r in stored if r.id == r.class_id and r.id not in equal]
        candidates = self._without_rejected(connection, done.digests[0], candidates)
        confirmed = self._confirm(source_connection or connection, row, done, candidates)
        confirmed |= dict.fromkeys(equal, 1.0)
        matches = [
            Match(r.row_key, near[r.class_id], confirmed[r.class_id], r.group_key)
            for r in stored
            if r.class_id in confirmed
        ]
        return CheckResult(sorted(matches, key=_nearest_first), too_little_text=False)

    def _find_equal(self, connection: Connection, digest: bytes) -> list[int]:
        return [] if digest == NOTHING_TO_SAY else find_by_digest(connection, self._store, digest)

    def _without_rejected(
        self, connection: Connection, digest: bytes, candidates: Sequence[StoredRow]
    ) -> list[StoredRow]:
        """Those that nobody has said to be no duplicate of this text."""
        tables, table_id = self._store.tables, self._store.table_id
        digests = {digest, *(candidate.digest for candidate in candidates)}
        rejected = rejected_among(connection, tables, table_id, digests)
        return [c for c in candidates if digest_pair(digest, c.digest) not in rejected]

    def _find_near(
        self, connection: Connection, fingerprint: int, sketch: NDArray[np.uint64]
    ) -> dict[int, int]:
        """id -> distance in bits of the candidates, whichever way they were proposed."""
        radius = self._watched.rule.radius
        near = find_near(connection, self._store, block_values(fingerprint, radius), fingerprint, radius)
        if self._watched.rule.bands:
            sharing = find_sharing(connection, self._store, sketch)
            near |= {row_id: (other ^ fingerprint).bit_count() for row_id, (other, _) in sharing.items()}
        return near

    def _confirm(
        self, connection: Connection, row: SourceRow, done: FingerprintedRows, candidates: Sequence[StoredRow]
    ) -> dict[int, float | None]:
        """id -> similarity of the candidates that are duplicates, None where it is not asked for.

        Their texts are read again; a row that has changed since it was stored is left to the next scan.
        """
        measure = MEASURE_OF[self._watched.rule.similarity]
        if not candidates:
            return {}
        if measure is None and not self._watched.within:
            return {candidate.id: None for candidate in candidates}
        ids = {candidate.row_key: candidate for candidate in candidates}
        rows = list(self._source.read_rows(connection, list(ids)))
        others = self._fingerprinter.fingerprint([r.values for r in rows], [r.within for r in rows])
        is_fresh = [ids[r.row_key].digest == d for r, d in zip(rows, others.digests, strict=True)]
        agrees = [r.within == row.within for r in rows]
        scores = self._similarities(measure, done, others)
        return {
            ids[r.row_key].id: score
            for r, score, fresh, agree in zip(rows, scores, is_fresh, agrees, strict=True)
            if fresh and agree and (score is None or score >= self._watched.rule.threshold)
        }

    @staticmethod
    def _similarities(
        measure: str | None, one: FingerprintedRows, others: FingerprintedRows
    ) -> Sequence[float | None]:
        count = len(others.digests)
        if measure is None:
            return [None] * count
        features = concatenate_features([one.features, others.features])
        left = np.zeros(count, np.int32)
        right = np.arange(1, count + 1, dtype=np.int32)
        found: list[float | None] = similarities(
            measure, features.starts, features.hashes, features.weights, left, right
        ).tolist()
        return found


def _nearest_first(match: Match) -> tuple[int, float, str]:
    return match.distance, -(match.similarity or 0.0), match.row_key
