"""Rows whose changes are still in the queue, compared by their present texts."""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import isnan

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import pairs_between
from db_dedup.flow.matching.pairs import Pairs
from db_dedup.flow.pipeline import FingerprintedRows, joined_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records import Match, SourceRow
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.records.forms import form_of_pair
from db_dedup.records.kinds import PairKind


@dataclass(frozen=True)
class Queued:
    """Rows of the queue.

    Attributes:
        row_keys: of all of them.
        rows: those of them that are in the table.
        done: what was computed of `rows`. A row that has not changed since it was stored is known; the search
            of stored rows finds it.
        written_since: row keys of candidates that were found to be written or deleted after these were read.
    """

    row_keys: frozenset[str]
    rows: list[SourceRow]
    done: FingerprintedRows
    written_since: set[str] = field(default_factory=set)

    @property
    def passed_over(self) -> frozenset[str]:
        """Row keys of rows that are gone or differ from what is stored of them."""
        known = {row.row_key for row, known in zip(self.rows, self.done.is_known, strict=True) if known}
        return self.row_keys - known

    def matches(
        self,
        watched: WatchedTable,
        rows: Sequence[SourceRow],
        done: FingerprintedRows,
        rejected: Container[DigestPair],
        own_keys: Sequence[str | None],
    ) -> list[list[Match]]:
        """Return for each of n other rows its duplicates among the changed rows of the queue.

        Args:
            watched: the rule.
            rows: n rows.
            done: what was computed of them.
            rejected: pairs of texts that people have labelled as no duplicates.
            own_keys: the row keys of the n rows; None for one that is not known.
        """
        found: list[list[Match]] = [[] for _ in rows]
        changed = np.flatnonzero(~self.done.is_known)
        pairs = self._pairs(watched, rows, done, changed)
        columns = (pairs.left, pairs.right, pairs.distances, pairs.similarities, pairs.kinds)
        for one, i, distance, score, packed in zip(*(column.tolist() for column in columns), strict=True):
            queued = i - len(rows)
            ours, theirs = done.digests[one], self.done.digests[queued]
            if ours != theirs and digest_pair(ours, theirs) not in rejected:
                similarity, row_key = None if isnan(score) else score, self.rows[queued].row_key
                kind = PairKind.of(packed)
                part = kind.part_of(own_keys[one], row_key)
                form = form_of_pair(done.form(one), self.done.form(queued))
                found[one].append(
                    Match(row_key, distance, similarity, None, kind.kind, part, kind.other_place, form)
                )
        equal: dict[bytes, list[int]] = defaultdict(list)
        for i in changed.tolist():
            equal[self.done.digests[i]].append(i)
        for one, (matches, digest) in enumerate(zip(found, done.digests, strict=True)):
            if digest != NO_FEATURES_DIGEST:
                matches.extend(self._copy(done.form(one), i) for i in equal.get(digest, ()))
        return found

    def _copy(self, form: int | None, i: int) -> Match:
        """Return a row of the queue as an exact duplicate of another with this form."""
        pair_form = form_of_pair(form, self.done.form(i))
        return Match(self.rows[i].row_key, 0, 1.0, None, "copy", None, False, pair_form)

    def _pairs(
        self,
        watched: WatchedTable,
        rows: Sequence[SourceRow],
        done: FingerprintedRows,
        changed: NDArray[np.int64],
    ) -> Pairs:
        """Return the duplicate pairs of n other rows (left) and the changed rows of the queue (right).

        Numbers below n are those of the other rows; n plus a position is a row of the queue.
        """
        both = joined_rows([done, self.done]).compared([row.within for row in [*rows, *self.rows]])
        ours = np.flatnonzero(done.has_fingerprint)
        theirs = changed[self.done.has_fingerprint[changed]] + len(rows)
        return pairs_between(both, Rule(watched.setting), ours.astype(np.int32), theirs.astype(np.int32))
