"""The texts of candidates, read again where the similarity or `within` asks for them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.ragged import Ragged
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.flow.features import Features
from db_dedup.flow.similarity import similarities
from db_dedup.flow.sketches import Sketches
from db_dedup.records import SourceRow
from db_dedup.store.row_faults import is_of_a_row
from db_dedup.store.source import Source

ROWS_A_BATCH: Final = 1000

_NO_PLACE: Final = -1


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
        self._keeps_weights = watched.rule.similarity == "cosine"
        self.stale: set[str] = set()
        self._place_of: dict[int, int] = {}
        self._ids: list[int | None] = []
        self._within: list[str | None] = []
        self._features = Ragged(np.uint64, np.int64) if self._keeps_weights else Ragged(np.uint64)
        self._sketches = Ragged(np.uint64)

    def add(self, ids: Sequence[int | None], rows: Sequence[SourceRow], done: FingerprintedRows) -> None:
        """Keep the features of rows that were read for another reason, if they have an id."""
        if not self.is_needed:
            return
        first = len(self._within)
        for i, row_id in enumerate(ids):
            if row_id is not None and not done.is_known[i]:
                self._place_of[row_id] = first + i
        self._ids += ids
        self._within += [row.within for row in rows]
        features, sketches = done.features, done.sketches
        self._features.add(features.counts, [features.hashes, features.weights][: 1 + self._keeps_weights])
        self._sketches.add(sketches.counts, [sketches.values])

    @contextmanager
    def for_a_while(self) -> Iterator[None]:
        """Forget at the end of the block what was read within; which rows are stale is remembered."""
        count = len(self._within)
        yield
        for row_id in self._ids[count:]:
            if row_id is not None:
                self._place_of.pop(row_id, None)
        del self._ids[count:], self._within[count:]
        self._features.keep(count)
        self._sketches.keep(count)

    def read(self, connection: Connection, rows: Collection[Stored]) -> None:
        """Have the features of these rows; one that has changed, is gone or cannot be read becomes stale."""
        if not self.is_needed:
            return
        wanted = [row for row in rows if row.id not in self._place_of and row.row_key not in self.stale]
        for batch in self._source.batches(wanted, ROWS_A_BATCH):
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
        found = list(self._source.read_rows(connection, list(stored)))
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
        """The features of all rows that were read; without weights where the measure asks for none."""
        weights = self._features.values(1) if self._keeps_weights else np.empty(0, np.int64)
        return Features(self._features.starts, self._features.values(0), weights)

    def sketches(self) -> Sketches:
        """The sketches of all rows that were read."""
        return Sketches(self._sketches.starts, self._sketches.values(0))

    def place(self, row_id: int) -> int | None:
        """Where a row's features stand; None where it is stale."""
        return self._place_of.get(row_id)

    def within(self, place: int) -> str | None:
        """What the row at this place must agree in with a duplicate."""
        return self._within[place]

    def places(self, ids: Iterable[int]) -> NDArray[np.int32]:
        """int32[n]: where the features of these rows stand; -1 for those that are stale or were not read."""
        return np.array([self._place_of.get(row_id, _NO_PLACE) for row_id in ids], np.int32)

    def confirm(
        self, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Judge p pairs of rows by their places.

        Returns:
            (bool[p] whether they are duplicates, float64[p] their similarity, NaN where it is not asked for).
        """
        scores = np.full(left.size, np.nan)
        if not self.is_needed:
            return np.ones(left.size, np.bool_), scores
        numbers: dict[str | None, int] = {}
        within = np.array([numbers.setdefault(text, len(numbers)) for text in self._within], np.int64)
        is_duplicate = (left != _NO_PLACE) & (right != _NO_PLACE)
        is_duplicate[is_duplicate] = within[left[is_duplicate]] == within[right[is_duplicate]]
        if self._measure is not None:
            features = self.features()
            scores[is_duplicate] = similarities(
                self._measure,
                features.starts,
                features.hashes,
                features.weights,
                left[is_duplicate],
                right[is_duplicate],
            )
            is_duplicate[is_duplicate] = scores[is_duplicate] >= self._threshold
        return is_duplicate, scores
