"""The texts of candidates, read again where the measure or `within` needs them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.errors import is_of_a_row
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.rows import compared_texts
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import SECTIONS, Details
from db_dedup.flow.matching.ragged import Ragged
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.records import SourceRow
from db_dedup.records.kinds import UNKNOWN
from db_dedup.store.source import Source

ROWS_A_BATCH: Final = 1000

_NO_PLACE: Final = -1


class Stored(Protocol):
    """What must be known of a row to read its text again."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def row_key(self) -> str: ...  # noqa: D102

    @property
    def digest(self) -> bytes: ...  # noqa: D102


class CandidateTexts:
    """The features and sketches of the rows that were read, by row id.

    Attributes:
        is_needed: False if the rule decides by fingerprints alone; nothing is read then.
        stale: row keys of rows that are gone or whose digest is not the stored one; they are in no pair.
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
        self._rule = Rule(watched.setting)
        self.is_needed = self._rule.measure is not None or bool(watched.within) or watched.rule.sketches
        self._keeps_weights = self._rule.uses_weights
        self.stale: set[str] = set()
        self._place_of: dict[int, int] = {}
        self._ids: list[int | None] = []
        self._within: list[str | None] = []
        self._features = Ragged(np.uint64, np.int64) if self._keeps_weights else Ragged(np.uint64)
        self._details = Ragged(np.uint64)
        self._sketches = Ragged(np.uint64)

    def add(self, ids: Sequence[int | None], rows: Sequence[SourceRow], done: FingerprintedRows) -> None:
        """Keep the features of rows that have been read; a row without an id cannot be asked for later."""
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
        self._details.add(done.details.counts, [done.details.values])
        self._sketches.add(sketches.counts, [sketches.values])

    @contextmanager
    def for_a_while(self) -> Iterator[None]:
        """Delete at the end of the block the features that were read in it; `stale` is kept."""
        count = len(self._within)
        yield
        for row_id in self._ids[count:]:
            if row_id is not None:
                self._place_of.pop(row_id, None)
        del self._ids[count:], self._within[count:]
        self._features.keep(count)
        self._details.keep(count * SECTIONS)
        self._sketches.keep(count)

    def read(self, connection: Connection, rows: Collection[Stored]) -> None:
        """Read the features of these rows; one that has changed, is gone or cannot be read becomes stale."""
        if not self.is_needed:
            return
        wanted = [row for row in rows if row.id not in self._place_of and row.row_key not in self.stale]
        for batch in self._source.batches(wanted, ROWS_A_BATCH):
            if self._passes_over_broken:
                self._read_readable(connection, batch)
            else:
                self._read_batch(connection, batch)

    def _read_readable(self, connection: Connection, batch: Sequence[Stored]) -> None:
        """Read these rows, one by one if a row among them cannot be read.

        The error of such a row is reported when its own change is processed, so that the pairs of the other
        rows can still be confirmed.
        """
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
        """Return the features of all rows that were read; without weights if the measure needs none."""
        weights = self._features.values(1) if self._keeps_weights else np.empty(0, np.int64)
        return Features(self._features.starts, self._features.values(0), weights)

    def details(self) -> Details:
        """Return the details of all rows that were read."""
        return Details(self._details.starts, self._details.values(0))

    def sketches(self) -> Sketches:
        """Return the sketches of all rows that were read."""
        return Sketches(self._sketches.starts, self._sketches.values(0))

    def place(self, row_id: int) -> int | None:
        """Return the position of a row's features; None if the row is stale."""
        return self._place_of.get(row_id)

    def within(self, place: int) -> str | None:
        """Return the text that the row at this position must share with a duplicate."""
        return self._within[place]

    def places(self, ids: Iterable[int]) -> NDArray[np.int32]:
        """Return int32[n]: the positions of these rows' features; -1 for a row that is stale or unread."""
        return np.array([self._place_of.get(row_id, _NO_PLACE) for row_id in ids], np.int32)

    def confirm(
        self, left: NDArray[np.int32], right: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.uint8]]:
        """Decide which of p candidate pairs are duplicates.

        Args:
            left: int32[p], positions as `places` gives them.
            right: int32[p], the same.

        Returns:
            (bool[p] whether they are duplicates, float64[p] their similarity, NaN if there is no measure,
            uint8[p] the kinds of those that are duplicates, packed as in `records.kinds`).
        """
        are_duplicates = np.ones(left.size, np.bool_)
        scores = np.full(left.size, np.nan)
        kinds = np.full(left.size, UNKNOWN, np.uint8)
        if not self.is_needed:
            return are_duplicates, scores, kinds
        is_known = (left != _NO_PLACE) & (right != _NO_PLACE)
        numbers: dict[str | None, int] = {}
        within = np.array([numbers.setdefault(text, len(numbers)) for text in self._within], np.int32)
        rows = compared_texts(within, self.features(), self.details())
        are_duplicates &= is_known
        found = self._rule.confirm(rows, left[is_known], right[is_known])
        are_duplicates[is_known], scores[is_known], kinds[is_known] = found
        return are_duplicates, scores, kinds
