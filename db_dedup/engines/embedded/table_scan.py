"""A full scan of one table up to its answer: rows -> fingerprints in the database -> matches in memory.

Pages of rows are fingerprinted and written as they come; what the matching needs of each row (some thirty
bytes and its features) stays here. Rows are then numbered in the order they were received, so that every
engine and every database gives the same representatives.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import Rule, WatchedTable
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess
from db_dedup.engines.embedded.matching import Matches, MatchRule, Table, match_table
from db_dedup.engines.embedded.spool import FeatureSpool
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.progress import Progress
from db_dedup.records import Family, SourceRow
from db_dedup.store.ordering import typed_key

_Scalar = TypeVar("_Scalar", bound=np.generic)

MEASURE_OF = {
    "none": None,
    "word_jaccard": "jaccard",
    "char_jaccard": "jaccard",
    "overlap": "overlap",
    "cosine": "cosine",
}
"""The similarity a table asks for -> the measure on its features."""


def match_rule(rule: Rule, abridge_above: int) -> MatchRule:
    """The rule in the matching's terms."""
    return MatchRule(rule.radius, MEASURE_OF[rule.similarity], rule.threshold, abridge_above)


@dataclass
class _Gathered:
    """What is kept of each row while reading, in reading order."""

    row_keys: list[str] = field(default_factory=list)
    order_values: list[str | None] = field(default_factory=list)
    fingerprints: list[NDArray[np.uint64]] = field(default_factory=list)
    has_fingerprint: list[NDArray[np.bool_]] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    within: list[int] = field(default_factory=list)


class TableScan:
    """Collects the rows of one table, then matches them."""

    def __init__(
        self,
        watched: WatchedTable,
        key_families: Sequence[Family],
        spool: FeatureSpool,
        fingerprinter: Fingerprinter | FingerprintProcess,
    ) -> None:
        self._watched = watched
        self._key_families = key_families
        self._fingerprinter = fingerprinter
        self._spool = spool
        self._rows = _Gathered()
        self._within_numbers: dict[str | None, int] = {}

    @property
    def row_count(self) -> int:
        """How many rows have come so far."""
        return len(self._rows.row_keys)

    @property
    def fingerprint_count(self) -> int:
        """How many of them have enough text to judge."""
        return int(sum(int(np.count_nonzero(has)) for has in self._rows.has_fingerprint))

    def add_page(self, page: Sequence[SourceRow]) -> FingerprintedRows:
        """Fingerprint a page of rows and keep what the matching needs."""
        done = self._fingerprinter.fingerprint([row.values for row in page], [row.within for row in page])
        rows = self._rows
        rows.row_keys += [row.row_key for row in page]
        rows.order_values += [row.order_value for row in page]
        rows.fingerprints.append(done.fingerprints)
        rows.has_fingerprint.append(done.has_fingerprint)
        rows.digests += done.digests
        rows.within += [self._within_number(row.within) for row in page]
        self._spool.add(done.features)
        return done

    def match(self, progress: Progress) -> "ScannedTable":
        """Number the rows in the order they were received and find all duplicates."""
        order = self._receipt_order()
        rows = self._rows
        table = Table(
            _joined(rows.fingerprints, np.uint64)[order],
            _joined(rows.has_fingerprint, np.bool_)[order],
            np.frombuffer(b"".join(rows.digests), np.uint64).reshape(-1, 2)[order],
            np.array(rows.within, np.int32)[order],
            self._spool.all_features(),
            order,
        )
        matches = match_table(table, match_rule(self._watched.rule, self._watched.abridge_above), progress)
        return ScannedTable([rows.row_keys[i] for i in order.tolist()], matches)

    def _within_number(self, within: str | None) -> int:
        """Equal numbers for rows that agree; without `within` columns all do."""
        return self._within_numbers.setdefault(within, len(self._within_numbers))

    def _receipt_order(self) -> NDArray[np.int64]:
        """By the order column, NULL last, then by typed key."""
        keys = [typed_key(key, self._key_families) for key in self._rows.row_keys]
        values = [(value is None, value or "") for value in self._rows.order_values]
        by_key = sorted(range(len(keys)), key=keys.__getitem__)
        # Sorting is stable, so rows of one order value stay in the order of their keys.
        return np.array(sorted(by_key, key=values.__getitem__), np.int64)


@dataclass(frozen=True)
class ScannedTable:
    """The answer of a scan; rows are numbered in the order they were received."""

    row_keys: list[str]
    matches: Matches


def _joined(parts: list[NDArray[_Scalar]], kind: type[_Scalar]) -> NDArray[_Scalar]:
    return np.concatenate(parts) if parts else np.empty(0, kind)
