"""The texts of candidates, read again where the similarity or `within` asks for them."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.batches import batches
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.flow.features import NO_FEATURES, Features, concatenate_features
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import Sketches, concatenate_sketches
from db_dedup.records import SourceRow
from db_dedup.store.row_faults import is_of_a_row
from db_dedup.store.source import Source

_ROWS_A_BATCH = 1000


class Stored(Protocol):
    """What must be known of a row whose text is wanted."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def row_key(self) -> str: ...  # noqa: D102

    @property
    def digest(self) -> bytes: ...  # noqa: D102


class CandidateTexts:
    """Features of rows by id, as far as they were needed.

    Attributes:
        stale: row keys of rows whose text is no longer what is stored; they confirm nothing.
    """

    def __init__(
        self,
        watched: WatchedTable,
        source: Source,
        fingerprinter: Fingerprinter,
        *,
        passes_over_broken: bool = True,
    ) -> None:
        self._source, self._fingerprinter = source, fingerprinter
        self._passes_over_broken = passes_over_broken
        self._measure = MEASURE_OF[watched.rule.similarity]
        self._threshold = watched.rule.threshold
        self.is_needed = self._measure is not None or bool(watched.within) or watched.rule.bands
        self._sketches: list[Sketches] = []
        self.stale: set[str] = set()
        self._place_of: dict[int, int] = {}
        self._within: list[str | None] = []
        self._parts: list[Features] = []

    def add(self, ids: Sequence[int | None], rows: Sequence[SourceRow], done: FingerprintedRows) -> None:
        """Keep the features of rows that were read for another reason, if they have an id."""
        if not self.is_needed:
            return
        first = len(self._within)
        for i, row_id in enumerate(ids):
            if row_id is not None and not done.is_known[i]:
                self._place_of[row_id] = first + i
        self._within += [row.within for row in rows]
        self._parts.append(done.features)
        self._sketches.append(done.sketches)

    def read(self, connection: Connection, rows: Collection[Stored]) -> None:
        """Have the features of these rows; one that has changed, is gone or cannot be read becomes stale."""
        if not self.is_needed:
            return
        wanted = [row for row in rows if row.id not in self._place_of and row.row_key not in self.stale]
        for batch in batches(wanted, _ROWS_A_BATCH):
            if self._passes_over_broken:
                self._read_readable(connection, batch)
            else:
                self._read_batch(connection, batch)

    def _read_readable(self, connection: Connection, batch: Sequence[Stored]) -> None:
        """One by one where a row is broken: its own change says so, and the others can be judged."""
        try:
            with connection.begin_nested():
                self._read_batch(connection, batch)
        except Exception as error:
            if not is_of_a_row(error):
                raise
            if len(batch) == 1:
                self.stale.add(batch[0].row_key)
                return
            for row in batch:
                self._read_readable(connection, [row])

    def _read_batch(self, connection: Connection, batch: Sequence[Stored]) -> None:
        stored = {row.row_key: row for row in batch}
        rows_now = self._source.read_rows(connection, list(stored))
        # A database may take another spelling of a key for the same.
        found = list({r.row_key: r for r in rows_now if r.row_key in stored}.values())
        fresh = [stored.pop(r.row_key) for r in found]
        done = self._fingerprinter.fingerprint(
            [r.values for r in found],
            [r.within for r in found],
            [row.digest for row in fresh],
            compares_known=True,
        )
        self.add([row.id for row in fresh], found, done)
        self.stale |= set(stored)
        for row, digest in zip(fresh, done.digests, strict=True):
            if row.digest != digest:
                self.stale.add(row.row_key)
                del self._place_of[row.id]

    def features(self) -> Features:
        """The features of all rows that were read."""
        return concatenate_features(self._parts) if self._parts else NO_FEATURES

    def sketches(self) -> Sketches:
        """The sketches of all rows that were read."""
        return concatenate_sketches(self._sketches)

    def place(self, row_id: int) -> int | None:
        """Where a row's features stand; None where it is stale."""
        return self._place_of.get(row_id)

    def within(self, place: int) -> str | None:
        """What the row at this place must agree in with a duplicate."""
        return self._within[place]

    def confirm(self, left: Sequence[int], right: Sequence[int]) -> list[tuple[bool, float | None]]:
        """For each two rows whether they are duplicates, and their similarity where it is asked for."""
        if not self.is_needed:
            return [(True, None)] * len(left)
        judged = [i for i, pair in enumerate(zip(left, right, strict=True)) if self._may_agree(*pair)]
        scores: list[float | None] = [None] * len(judged)
        if self._measure is not None and judged:
            features = concatenate_features(self._parts)
            a, b = (np.array([self._place_of[side[i]] for i in judged], np.int32) for side in (left, right))
            scores = similarities(
                self._measure, features.starts, features.hashes, features.weights, a, b
            ).tolist()
        result: list[tuple[bool, float | None]] = [(False, None)] * len(left)
        for i, score in zip(judged, scores, strict=True):
            result[i] = (score is None or score >= self._threshold, score)
        return result

    def _may_agree(self, a: int, b: int) -> bool:
        place_a, place_b = self._place_of.get(a), self._place_of.get(b)
        if place_a is None or place_b is None:
            return False
        return self._within[place_a] == self._within[place_b]
