"""A full scan of one table up to its answer: rows -> fingerprints -> matches in memory.

The scan keeps what the matching needs of each row: some thirty bytes and its features. The caller stores the
fingerprints. At the end the rows are numbered in the order they were received, so that every engine and every
database gives the same representatives.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import WatchedTable
from db_dedup.engines.base import ReadRows
from db_dedup.engines.embedded.answer import EmbeddedAnswer
from db_dedup.engines.embedded.compile_ahead import CompilingAhead
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcesses
from db_dedup.flow.compare.rows import NO_PLACE, ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import NO_FEATURES
from db_dedup.flow.features.details import NO_DETAILS
from db_dedup.flow.matching.budget import MATCHING_MB, Budget
from db_dedup.flow.matching.match import (
    Matches,
    find_exact_duplicates,
    match_table,
    rows_with_candidates,
)
from db_dedup.flow.matching.rejections import rejected_rows
from db_dedup.flow.matching.spool import FeatureSpool
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.rows.keys import refuse_repeated
from db_dedup.flow.rows.order import key_order
from db_dedup.flow.stored_rows import row_fingerprints, sketch_sizes
from db_dedup.flow.usable_cores import usable_cores
from db_dedup.progress import Progress
from db_dedup.records import Family, SourceRow
from db_dedup.records.fingerprints import DigestPair, RowFingerprint, StoredFingerprint
from db_dedup.records.frames import FrameList
from db_dedup.records.read_size import ReadSize, length_of

_Scalar = TypeVar("_Scalar", bound=np.generic)

_MOST_THREADS = 4
"""The most threads of the matching. Each sorts some millions of hashes of its own."""


@dataclass
class _Rows:
    """What is kept of each row, in reading order; arrays and digests page by page.

    Attributes:
        places: the positions of the features in the spool, -1 for a row without.
        sketch_places: the positions of the sketches, -1 for a row without.
        digests: those of a page, one after the other.
    """

    row_keys: list[str] = field(default_factory=list)
    order_values: list[str | None] = field(default_factory=list)
    fingerprints: list[NDArray[np.uint64]] = field(default_factory=list)
    has_fingerprint: list[NDArray[np.bool_]] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    within: list[NDArray[np.int32]] = field(default_factory=list)
    places: list[NDArray[np.int64]] = field(default_factory=list)
    sketch_places: list[NDArray[np.int64]] = field(default_factory=list)
    forms: list[NDArray[np.int8]] = field(default_factory=list)


class EmbeddedScan:
    """Collects the rows of one table, then matches them. See `engines.base.PageScan` for the methods.

    Attributes:
        reread: rows that had changed when their text was read again.
        framed_count: rows that were added whose frame was left out.
    """

    def __init__(
        self,
        watched: WatchedTable,
        key_families: Sequence[Family],
        spool: FeatureSpool,
        fingerprinter: Fingerprinter | FingerprintProcesses,
        compiling: CompilingAhead | None = None,
        matching_memory: int = MATCHING_MB << 20,
    ) -> None:
        self._watched = watched
        self._rule = Rule(watched.setting)
        self._key_families = key_families
        self._fingerprinter = fingerprinter
        self._compiling = compiling
        self._budget = Budget(matching_memory, min(usable_cores(), _MOST_THREADS))
        self._spool = spool
        self._rows = _Rows()
        self._read_size = ReadSize()
        self._within_numbers: dict[str | None, int] = {}
        self._keeping = Lock()
        self._known_count = 0
        self.reread: list[RowFingerprint] = []
        self.framed_count = 0

    @property
    def pages_at_once(self) -> int:
        """How many threads may add a page at the same time.

        One more than there are processes: while its thread keeps what a process has computed, the process
        works on the next page.
        """
        return self._fingerprinter.count + 1 if isinstance(self._fingerprinter, FingerprintProcesses) else 1

    @property
    def row_count(self) -> int:
        """How many rows have been added so far."""
        return len(self._rows.row_keys)

    @property
    def segmented_count(self) -> int:
        """How many texts have been segmented so far, including those that were read again."""
        return self._spool.row_count - self._known_count

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of the texts of all pages, none of which has been added yet."""
        self._fingerprinter.leave_out(frames)

    def add_page(
        self,
        page: Sequence[SourceRow],
        stored: Mapping[str, StoredFingerprint],
        *,
        with_sketch_sizes: bool = False,
    ) -> list[RowFingerprint]:
        """Fingerprint a page of rows and keep what the matching needs.

        A row whose digest is still the stored one gets the stored fingerprint. Only its sketch and what the
        measure compares are computed.
        """
        before = [stored.get(row.row_key) for row in page] if stored else []
        done = self._fingerprinter.fingerprint(
            [row.values for row in page],
            [row.within for row in page],
            [old and old.digest for old in before] if stored else None,
            compares_known=self._watched.rule.sketches,
        )
        done.take_stored(before)
        with self._keeping:
            if self._watched.rule.sketches:
                self._known_count += sum(
                    old is not None and old.digest == digest
                    for old, digest in zip(before, done.digests, strict=False)
                )
            self.framed_count += int(np.count_nonzero(done.framed))
            self._keep(page, done)
            self._rows.sketch_places.append(self._spooled_sketches(done))
        has_sizes = with_sketch_sizes and self._watched.rule.sketches
        if has_sizes:
            sizes = sketch_sizes(page, done, self._key_families)
            return row_fingerprints(page, done, sizes, with_sets=True)
        # Rows that are as they were stored are not written.
        has_changed = not before or any(
            old is None or old.digest != digest for old, digest in zip(before, done.digests, strict=True)
        )
        return row_fingerprints(page, done, with_sets=has_changed and self._watched.rule.sketches)

    def match(
        self, progress: Progress, read_rows: ReadRows, rejected: Collection[DigestPair] = ()
    ) -> EmbeddedAnswer:
        """Number the rows in the order they were received; the pairs are found when they are asked for."""
        refuse_repeated(self._rows.row_keys)
        if self._compiling is not None:
            self._compiling.wait()
        rows = _Joined.of(self._rows)
        self._rows = _Rows(self._rows.row_keys)  # all else has been copied
        self._complete(rows, progress, read_rows)
        if isinstance(self._fingerprinter, FingerprintProcesses):
            self._fingerprinter.end()  # their memory is free during the matching
        table, order = self._table(rows)
        rejected_pairs = rejected_rows(table.digests, rejected)
        table = replace(
            table,
            features=self._spool.all_features(),
            details=self._spool.all_details(),
            rejected=rejected_pairs,
        )
        numbers = order.tolist()
        keys, order_values = ([own[i] for i in numbers] for own in (rows.row_keys, rows.order_values))
        copy_of = find_exact_duplicates(table.digests)

        def find_matches() -> Matches:
            above = self._watched.abridge_above
            return match_table(table, self._rule, above, progress, copy_of, self._budget)

        return EmbeddedAnswer(keys, order_values, table, rows.forms[order], copy_of, find_matches)

    def _keep(self, page: Sequence[SourceRow], done: FingerprintedRows) -> None:
        rows = self._rows
        rows.row_keys += [row.row_key for row in page]
        rows.order_values += [row.order_value for row in page]
        rows.fingerprints.append(done.fingerprints)
        rows.has_fingerprint.append(done.has_fingerprint)
        rows.digests.append(b"".join(done.digests))
        rows.forms.append(done.forms)
        rows.within.append(np.array([self._within_number(row.within) for row in page], np.int32))
        rows.places.append(self._spooled(done))

    def _spooled(self, done: FingerprintedRows) -> NDArray[np.int64]:
        """Write the features of new rows to the spool; return int64[n], the position of each row's."""
        places = np.full(len(done.digests), NO_PLACE, np.int64)
        is_new = ~done.is_known
        places[is_new] = self._spool.row_count + np.arange(np.count_nonzero(is_new))
        self._spool.add(done.features, done.details, is_new)
        return places

    def _spooled_sketches(self, done: FingerprintedRows) -> NDArray[np.int64]:
        """Write the computed sketches to the spool; return int64[n], the position of each."""
        places = np.full(len(done.digests), NO_PLACE, np.int64)
        if not self._watched.rule.sketches:
            return places
        is_new = ~done.is_known
        places[is_new] = self._spool.add_sketches(done.sketches.take(np.flatnonzero(is_new)))
        return places

    def _table(self, rows: "_Joined") -> tuple[ComparedRows, NDArray[np.int64]]:
        order = self._receipt_order(rows)
        order = order[~rows.is_gone[order]]
        table = ComparedRows(
            rows.fingerprints[order],
            rows.has_fingerprint[order],
            rows.digests[order],
            rows.within[order],
            NO_FEATURES,
            NO_DETAILS,
            rows.places[order],
            self._spool.all_sketches(),
            rows.sketch_places[order],
        )
        return table, order

    def _complete(self, rows: "_Joined", progress: Progress, read: ReadRows) -> None:
        """Read and segment the rows that were not segmented and need features; with sketches all rows were.

        A row that has changed since it was first read may have other candidates, so the search is repeated
        until no row has changed.
        """
        while True:
            table, order = self._table(rows)
            unread = self._unread_candidates(table, progress)
            if not np.any(unread) or not self._read_again(rows, order[unread].tolist(), progress, read):
                return

    def _unread_candidates(self, table: ComparedRows, progress: Progress) -> NDArray[np.bool_]:
        """Return bool[n]: the rows that have a candidate and no features yet."""
        is_unread: NDArray[np.bool_] = table.places == NO_PLACE
        if self._rule.measure is None or not np.any(is_unread):
            return np.zeros(is_unread.size, np.bool_)
        is_unread &= rows_with_candidates(table, self._watched.rule.radius, progress, self._budget)
        return is_unread

    def _read_again(
        self, rows: "_Joined", numbers: Sequence[int], progress: Progress, read: ReadRows
    ) -> bool:
        """Read the features of these rows; return whether a row has changed or is gone."""
        progress.start("texts of candidates", len(numbers))
        has_changed = False
        for batch in self._read_size.batches(numbers):
            has_changed |= self._read_batch_again(rows, batch, read)
            progress.advance(len(batch))
        progress.finish()
        return has_changed

    def _read_batch_again(self, rows: "_Joined", numbers: Sequence[int], read: ReadRows) -> bool:
        number_of = {rows.row_keys[i]: i for i in numbers}
        page = list(read(list(number_of)))
        self._read_size.note(len(page), sum(map(length_of, page)))
        found = [number_of.pop(row.row_key) for row in page]
        done = self._fingerprinter.fingerprint(
            [row.values for row in page],
            [row.within for row in page],
            [rows.digests[i].tobytes() for i in found],
            compares_known=True,
        )
        for place, i in enumerate(found):
            if done.digests[place] == rows.digests[i].tobytes():
                done.fingerprints[place] = rows.fingerprints[i]
                done.has_fingerprint[place] = rows.has_fingerprint[i]
        rows.places[found] = self._spooled(done)
        # The keys that are left were read with their page: these rows have been deleted since.
        rows.is_gone[list(number_of.values())] = True
        has_changed = bool(number_of)
        again = row_fingerprints(page, done)
        for place, (i, row, new) in enumerate(zip(found, page, again, strict=True)):
            before = rows.digests[i].tobytes(), rows.order_values[i], rows.forms[i]
            if (new.digest, new.order_value, done.forms[place]) != before:
                rows.put(i, new, self._within_number(row.within), done.forms[place])
                self.reread.append(new)
                has_changed = True
        return has_changed

    def _within_number(self, within: str | None) -> int:
        """Return the number of a `within` text; rows that agree have equal numbers."""
        return self._within_numbers.setdefault(within, len(self._within_numbers))

    def _receipt_order(self, rows: "_Joined") -> NDArray[np.int64]:
        """Return int64[n]: the rows sorted by the order column, NULL last, then by typed key."""
        by_key = key_order(rows.row_keys, self._key_families)
        if rows.order_values.count(None) == len(rows.order_values):
            return by_key
        values = [(value is None, value or "") for value in rows.order_values]
        # Sorting is stable, so rows of one order value stay in the order of their keys.
        return np.array(sorted(by_key.tolist(), key=values.__getitem__), np.int64)


@dataclass(frozen=True)
class _Joined:
    """The rows of all pages, in reading order; a row that was read again is replaced."""

    row_keys: list[str]
    order_values: list[str | None]
    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    within: NDArray[np.int32]
    places: NDArray[np.int64]
    sketch_places: NDArray[np.int64]
    is_gone: NDArray[np.bool_]
    forms: NDArray[np.int8]

    @classmethod
    def of(cls, rows: _Rows) -> "_Joined":
        return cls(
            rows.row_keys,
            rows.order_values,
            _joined(rows.fingerprints, np.uint64),
            _joined(rows.has_fingerprint, np.bool_),
            np.frombuffer(bytearray().join(rows.digests), np.uint64).reshape(-1, 2),
            _joined(rows.within, np.int32),
            _joined(rows.places, np.int64),
            _joined(rows.sketch_places, np.int64),
            np.zeros(len(rows.row_keys), np.bool_),
            _joined(rows.forms, np.int8),
        )

    def put(self, i: int, new: RowFingerprint, within: int, form: np.int8) -> None:
        self.order_values[i], self.forms[i] = new.order_value, form
        self.fingerprints[i], self.has_fingerprint[i] = new.fingerprint or 0, new.fingerprint is not None
        self.digests[i] = np.frombuffer(new.digest, np.uint64)
        self.within[i] = within


def _joined(parts: list[NDArray[_Scalar]], kind: type[_Scalar]) -> NDArray[_Scalar]:
    return np.concatenate(parts) if parts else np.empty(0, kind)
