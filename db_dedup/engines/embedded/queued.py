"""Rows whose changes still wait in the queue, judged by their texts as they are now."""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.features import concatenate_features
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import meetings
from db_dedup.records import Match, SourceRow
from db_dedup.store.verdicts import DigestPair, digest_pair


@dataclass(frozen=True)
class Queued:
    """Rows of the queue.

    Attributes:
        row_keys: of all of them.
        rows: those that are there.
        done: what the flow knows of these; a row that is as it is stored is known, and found there.
    """

    row_keys: frozenset[str]
    rows: list[SourceRow]
    done: FingerprintedRows

    @property
    def passed_over(self) -> frozenset[str]:
        """Row keys of those that are gone, or are not as they are stored."""
        known = {row.row_key for row, known in zip(self.rows, self.done.is_known, strict=True) if known}
        return self.row_keys - known

    def matches(
        self,
        watched: WatchedTable,
        rows: Sequence[SourceRow],
        done: FingerprintedRows,
        rejected: Container[DigestPair],
    ) -> list[list[Match]]:
        """For each of n other rows those of these that are not as they are stored which it duplicates.

        Args:
            watched: the rule.
            rows: n rows.
            done: what the flow knows of them.
            rejected: digests of two texts that are said to be no duplicates.
        """
        found: list[list[Match]] = [[] for _ in rows]
        changed = np.flatnonzero(~self.done.is_known)
        left, right = self._proposed(watched, done, changed)
        scores = pair_similarities(MEASURE_OF[watched.rule.similarity], done, self.done, left, right)
        for one, i, score in zip(left.tolist(), right.tolist(), scores, strict=True):
            ours, theirs = done.digests[one], self.done.digests[i]
            is_similar = score is None or score >= watched.rule.threshold
            is_pair = is_similar and self.rows[i].within == rows[one].within
            if ours != theirs and is_pair and digest_pair(ours, theirs) not in rejected:
                distance = (int(done.fingerprints[one]) ^ int(self.done.fingerprints[i])).bit_count()
                found[one].append(Match(self.rows[i].row_key, distance, score, None))
        equal: dict[bytes, list[Match]] = defaultdict(list)
        for i in changed.tolist():
            equal[self.done.digests[i]].append(Match(self.rows[i].row_key, 0, 1.0, None))
        for matches, digest in zip(found, done.digests, strict=True):
            if digest != NOTHING_TO_SAY:
                matches.extend(equal.get(digest, ()))
        return found

    def _proposed(
        self, watched: WatchedTable, done: FingerprintedRows, changed: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(int32[p] places of other rows, int32[p] places of these): pairs to confirm, each once."""
        theirs = changed[self.done.has_fingerprint[changed]]
        ours = np.flatnonzero(done.has_fingerprint)
        is_proposed = np.zeros((ours.size, theirs.size), np.bool_)
        for place, one in enumerate(ours.tolist()):
            distances = np.bitwise_count(self.done.fingerprints[theirs] ^ done.fingerprints[one])
            is_proposed[place] = distances <= watched.rule.radius
        if watched.rule.bands:
            sketches = self.done.sketches.take(theirs)
            of_rows = np.repeat(np.arange(theirs.size), sketches.counts)
            asked = done.sketches.take(ours)
            is_proposed[meetings(asked, sketches.values, of_rows, sketches.counts)] = True
        left, right = np.nonzero(is_proposed)
        return ours[left].astype(np.int32), theirs[right].astype(np.int32)


def pair_similarities(
    measure: str | None,
    ours: FingerprintedRows,
    theirs: FingerprintedRows,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
) -> Sequence[float | None]:
    """How similar the rows of p pairs are; None where that is not asked for.

    Args:
        measure: of similarity.
        ours: rows.
        theirs: other rows.
        left: int32[p], places among ours.
        right: int32[p], places among theirs.
    """
    if measure is None or not left.size:
        return [None] * left.size
    features = concatenate_features([ours.features, theirs.features])
    offset = np.int32(len(ours.digests))
    found: list[float | None] = similarities(
        measure, features.starts, features.hashes, features.weights, left, right + offset
    ).tolist()
    return found
