"""The texts of candidates, read again where the measure or `within` needs them."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.errors import is_of_a_row
from db_dedup.engines.embedded.feature_cache import FeatureCache
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.rows import NO_PLACE
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import Features
from db_dedup.flow.features.details import Details
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.records import SourceRow
from db_dedup.records.kinds import UNKNOWN
from db_dedup.store.segment_lookup import IndexMemory
from db_dedup.store.source import Source

ROWS_A_BATCH: Final = 1000


class Stored(Protocol):
    """What must be known of a row to read its text again."""

    @property
    def id(self) -> int: ...  # noqa: D102

    @property
    def row_key(self) -> str: ...  # noqa: D102

    @property
    def digest(self) -> bytes: ...  # noqa: D102


class CandidateTexts:
    """The features and sketches of the rows of one batch, by digest, in a cache that outlives the batch.

    Attributes:
        is_needed: False if the rule decides by fingerprints alone; nothing is read then.
        stale: row keys of rows that are gone or whose digest is not the stored one; they are in no pair.
    """

    def __init__(
        self,
        watched: WatchedTable,
        source: Source,
        fingerprinter: Fingerprinter,
        cache: FeatureCache | None = None,
        *,
        passes_over_broken: bool = True,
        ends_reads: bool = False,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            watched: the settings.
            source: the user's table.
            fingerprinter: of the stored recipe.
            cache: where to keep the features; None for a cache of its own.
            passes_over_broken: a row that cannot be read is stale; else its error is raised.
            ends_reads: end the transaction after each read: the connection is for reading alone.
        """
        self._source, self._fingerprinter = source, fingerprinter
        self._passes_over_broken, self._ends_reads = passes_over_broken, ends_reads
        self._rule = Rule(watched.setting)
        self._cache = FeatureCache(watched) if cache is None else cache
        self.is_needed = self._rule.measure is not None or bool(watched.within) or watched.rule.sketches
        self.stale: set[str] = set()
        self._left_out: set[tuple[str, bytes]] = set()
        self._changed: dict[str, bytes] = {}

    @property
    def index(self) -> IndexMemory:
        """What look-ups have read of the index of sketches."""
        return self._cache.index

    def add(self, rows: Sequence[SourceRow], done: FingerprintedRows) -> None:
        """Keep the features of rows that have been read; other texts of these rows are not read any more."""
        if self.is_needed:
            self._cache.add([row.within for row in rows], done)
            self._changed.update(
                (row.row_key, digest) for row, digest in zip(rows, done.digests, strict=True)
            )

    def trim(self, kept: Iterable[Stored] = ()) -> None:
        """Bring the features in memory back within their budget; those of the rows to keep stay."""
        self._cache.trim([row.digest for row in kept])

    def read(self, connection: Connection, rows: Collection[Stored]) -> None:
        """Read the features of these rows; one that has changed, is gone or cannot be read becomes stale."""
        if not self.is_needed:
            return
        # The former text of a changed row is among the candidates of its new one.
        self._leave_out(row for row in rows if self._changed.get(row.row_key, row.digest) != row.digest)
        wanted = [row for row in rows if row.digest not in self._cache and not self.is_left_out(row)]
        for batch in self._source.batches(wanted, ROWS_A_BATCH):
            if self._passes_over_broken:
                self._read_readable(connection, batch)
            else:
                self._read_batch(connection, batch)

    def is_left_out(self, row: Stored) -> bool:
        """Return whether this digest of a row was wanted and could not be read.

        A row of the key that is stale may have another digest: while a changed row is matched ahead, its
        former text is among its candidates.
        """
        return (row.row_key, row.digest) in self._left_out

    def _leave_out(self, rows: Iterable[Stored]) -> None:
        for row in rows:
            self.stale.add(row.row_key)
            self._left_out.add((row.row_key, row.digest))

    def end_read(self, connection: Connection) -> None:
        """End a transaction that has only read, since what follows takes long.

        Only where the connection is for reading alone.
        """
        if self._ends_reads:
            connection.rollback()

    def _read_readable(self, connection: Connection, batch: Sequence[Stored]) -> None:
        """Read these rows, one by one if a row among them cannot be read.

        The error of such a row is reported when its own change is processed, so that the pairs of the other
        rows can still be confirmed.
        """
        try:
            with nullcontext() if self._ends_reads else connection.begin_nested():
                self._read_batch(connection, batch)
        except Exception as error:
            if not is_of_a_row(error):
                raise
            self.end_read(connection)  # in PostgreSQL nothing can be read before
            if len(batch) == 1:
                self._leave_out(batch)
                return
            for row in batch:
                self._read_readable(connection, [row])

    def _read_batch(self, connection: Connection, batch: Sequence[Stored]) -> None:
        stored = {row.row_key: row for row in batch}
        found = list(self._source.read_rows(connection, list(stored)))
        self.end_read(connection)
        fresh = [stored[r.row_key] for r in found]
        done = self._fingerprinter.fingerprint(
            [r.values for r in found],
            [r.within for r in found],
            [row.digest for row in fresh],
            compares_known=True,
        )
        self._cache.add([row.within for row in found], done)
        # By the batch: it may have a row with its new and with its former digest.
        digests = {row.row_key: digest for row, digest in zip(found, done.digests, strict=True)}
        self._leave_out(row for row in batch if digests.get(row.row_key) != row.digest)

    def features(self) -> Features:
        """Return the features of all rows in memory; without weights if the measure needs none."""
        return self._cache.features()

    def details(self) -> Details:
        """Return the details of all rows in memory."""
        return self._cache.details()

    def sketches(self) -> Sketches:
        """Return the sketches of all rows in memory."""
        return self._cache.sketches()

    def place(self, digest: bytes) -> int | None:
        """Return the position of the features of a digest; None if its row is stale or unread."""
        return self._cache.place(digest)

    def within(self, place: int) -> int:
        """Return a number that is equal for rows that agree in the `within` columns."""
        return self._cache.within(place)

    def places(self, rows: Iterable[Stored]) -> NDArray[np.int32]:
        """Return int32[n]: the positions of these rows' features; -1 for a row that is stale or unread."""
        return self._cache.places(row.digest for row in rows)

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
        is_known = (left != NO_PLACE) & (right != NO_PLACE)
        are_duplicates &= is_known
        found = self._rule.confirm(self._cache.compared(), left[is_known], right[is_known])
        are_duplicates[is_known], scores[is_known], kinds[is_known] = found
        return are_duplicates, scores, kinds
