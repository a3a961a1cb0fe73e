"""Rows whose changes still wait in the queue, judged by their texts as they are now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.flow.features import concatenate_features
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import concatenate_sketches, meet
from db_dedup.records import Match, SourceRow


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
        self, watched: WatchedTable, row: SourceRow, one: FingerprintedRows, rejected: Collection[bytes]
    ) -> list[Match]:
        """Those of the rows that are not as they are stored which a row duplicates.

        Args:
            watched: the rule.
            row: the row.
            one: what the flow knows of it.
            rejected: digests of texts that are said to be no duplicates of its own.
        """
        rule, found = watched.rule, []
        scores = similarities_with(MEASURE_OF[rule.similarity], one, self.done)
        for i in np.flatnonzero(~self.done.is_known).tolist():
            other, digest, score = self.rows[i], self.done.digests[i], scores[i]
            if digest == one.digests[0] != NOTHING_TO_SAY:
                found.append(Match(other.row_key, 0, 1.0, None))
                continue
            if not (one.has_fingerprint[0] and self.done.has_fingerprint[i]) or other.within != row.within:
                continue
            distance = (int(one.fingerprints[0]) ^ int(self.done.fingerprints[i])).bit_count()
            is_proposed = distance <= rule.radius or (rule.bands and self._meets(one, i))
            if is_proposed and digest not in rejected and (score is None or score >= rule.threshold):
                found.append(Match(other.row_key, distance, score, None))
        return found

    def _meets(self, one: FingerprintedRows, i: int) -> bool:
        both = concatenate_sketches([one.sketches, self.done.sketches])
        return bool(meet(both.starts, both.values, 0, 1 + i))


def similarities_with(
    measure: str | None, one: FingerprintedRows, others: FingerprintedRows
) -> Sequence[float | None]:
    """How similar the other rows are to the one; None where that is not asked for."""
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
