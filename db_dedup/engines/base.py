"""The protocol of an engine.

An engine finds the duplicates of a watched table. It takes rows page by page and returns fingerprints, links
of exact duplicates, pairs and groups, in batches; the jobs write them. The pure steps of `flow` decide, so
every engine returns the same answer.

In the answer of a scan the rows are numbered in the order they were received. They are returned in this
order, and all else refers to these numbers. Batches may have any size: an engine on one machine may return
everything in one batch.

A new engine is a module with a class that has the methods of `Engine`, and a line in `app.engines`. The class
of an engine that offers scans only inherits its other methods from `engines.scans_only`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection
from sqlalchemy import Engine as SQLEngine

from db_dedup.config import WatchedTable
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.matching.pairs import Pairs
from db_dedup.progress import Progress
from db_dedup.records import CheckResult, Family, Record, Reservation, RowKey, SourceRow
from db_dedup.records.fingerprints import DigestPair, RowFingerprint, StoredFingerprint
from db_dedup.records.frames import FrameList
from db_dedup.records.pair_columns import PairColumns
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.source import Source

ReadRows = Callable[[Sequence[str]], Iterable[SourceRow]]
"""Reads the rows of these keys as they are now."""


class RowBatch(NamedTuple):
    """The next n rows.

    Attributes:
        row_keys: n row keys.
        order_values: n sortable values of the order column.
        fingerprints: uint64[n]; meaningless where `has_fingerprint` is False.
        has_fingerprint: bool[n].
        digests: uint64[n, 2], the two halves of each digest.
        sketches: of rows, in any order.
        sketch_places: int64[n], each row's number among the sketches; -1 for none.
        forms: int8[n], the numbers of the rows' forms; -1 where the normaliser knows no forms.
    """

    row_keys: list[str]
    order_values: list[str | None]
    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    sketches: Sketches
    sketch_places: NDArray[np.int64]
    forms: NDArray[np.int8]


class LinkBatch(NamedTuple):
    """Some exact duplicates: int32[l] rows, and int32[l] the canonical row of each."""

    rows: NDArray[np.int32]
    canonical: NDArray[np.int32]

    @classmethod
    def of(cls, copy_of: NDArray[np.int32]) -> "LinkBatch":
        """Return all exact duplicates, given int32[n] the canonical row of each row, -1 for none."""
        rows = np.flatnonzero(copy_of >= 0).astype(np.int32)
        return cls(rows, copy_of[rows])


class GroupBatch(NamedTuple):
    """Some rows of groups, exact duplicates included.

    Attributes:
        rows: int32[m].
        representatives: int32[m], of the group of each.
        is_loose: bool[m], of the group of each.
        is_abridged: bool[m], of the group of each.
    """

    rows: NDArray[np.int32]
    representatives: NDArray[np.int32]
    is_loose: NDArray[np.bool_]
    is_abridged: NDArray[np.bool_]


class ScanAnswer(Protocol):
    """What a scan found. Each method can be called once.

    The caller takes the rows and links first, and writes them in a thread while it takes the pairs. So an
    engine may begin the search for pairs when they are taken.
    """

    def rows(self) -> Iterator[RowBatch]:
        """Yield all rows, in the order they were received."""

    def links(self) -> Iterator[LinkBatch]:
        """Yield all exact duplicates."""

    def pairs(self) -> Iterator[Pairs]:
        """Yield all pairs of canonical rows; of an abridged group only those that connect it."""

    def groups(self) -> Iterator[GroupBatch]:
        """Yield all rows that are in a group."""


class TableScan(Protocol):
    """One pass over a table: all rows are added, then `match`.

    It is a `PageScan` if the caller reads the rows, and a `ReadingScan` if the engine reads them.
    """

    @property
    def row_count(self) -> int:
        """How many rows have been added so far."""

    @property
    def segmented_count(self) -> int:
        """How many texts have been segmented so far, including those that were read again."""

    @property
    def framed_count(self) -> int:
        """How many rows have been added so far whose frame was left out."""

    @property
    def reread(self) -> Sequence[RowFingerprint]:
        """Rows that had changed when `match` read their text again."""

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of the texts of all pages, none of which has been added yet."""

    def match(
        self, progress: Progress, read_rows: ReadRows, rejected: Collection[DigestPair] = ()
    ) -> ScanAnswer:
        """Find all duplicates among the rows that were added.

        Args:
            progress: gets the state of the work.
            read_rows: reads again the rows that were not segmented and have a candidate.
            rejected: pairs of texts that people labelled as no duplicates.

        Raises:
            RowKeyError: two rows have the same key.
        """


@runtime_checkable
class PageScan(TableScan, Protocol):
    """A pass for which the caller reads the rows: call `add_page` for each page of them, then `match`."""

    @property
    def pages_at_once(self) -> int:
        """How many threads may call `add_page` at the same time."""

    def add_page(
        self,
        page: Sequence[SourceRow],
        stored: Mapping[str, StoredFingerprint],
        *,
        with_sketch_sizes: bool = False,
    ) -> list[RowFingerprint]:
        """Fingerprint a page of rows, and keep what the matching needs of them.

        Args:
            page: the rows.
            stored: what is stored of them under the same recipe. A row whose digest is still the stored one
                need not be segmented.
            with_sketch_sizes: return the rows with the sizes of their sketches and the sets of their
                features; among exact duplicates only the first has them.
        """


@runtime_checkable
class ReadingScan(TableScan, Protocol):
    """A pass that reads the table itself, on other machines: iterate over `read_table`, then call `match`."""

    def read_table(
        self, source: Source, engine: SQLEngine, *, with_sketch_sizes: bool = False
    ) -> Iterator[list[RowFingerprint]]:
        """Read and fingerprint the whole table, and yield its rows page by page.

        Args:
            source: the table.
            engine: connects to it, with the account and the address that the other machines use, too.
            with_sketch_sizes: as for `PageScan.add_page`.

        Raises:
            ConfigError: the table cannot be read from other machines.
        """


class Increment(Protocol):
    """Applies changes of one table under one recipe, in transactions of the caller."""

    @property
    def source(self) -> Source:
        """The user's table."""

    @property
    def store(self) -> FingerprintStore:
        """The stored answer."""

    def make_ready(self) -> None:
        """Load and compile what a first batch needs; call it before the lock of the table is taken."""

    @property
    def has_index(self) -> bool:
        """Whether an index of all fingerprints is in memory; without it each search queries the database."""

    def load_index(self, connection: Connection) -> None:
        """Read all fingerprints into memory, through a connection for reading alone."""

    def drop_index(self) -> None:
        """Delete from memory what depends on the stored answer.

        This is needed after a rollback: the index then has fingerprints that the database does not have.
        """

    def prepare(self, connection: Connection, row_keys: Collection[str], again: Collection[str] = ()) -> None:
        """Compute ahead what the next `apply` needs, so that it holds the lock only to write.

        `apply` reads the rows again, and uses what was computed only for equal values. `drop_index` deletes
        what depends on the stored answer.

        Args:
            connection: used for nothing but reading, in short transactions.
            row_keys: of rows that may have changed.
            again: the keys of rows whose pairs are searched even if the rows have not changed.
        """

    def apply(
        self,
        connection: Connection,
        row_keys: Collection[str],
        now: datetime,
        again: Collection[str] = (),
        written: Collection[str] = (),
    ) -> set[str]:
        """Update the stored answer for rows that may have changed.

        Args:
            connection: in a transaction that holds the lock of the table.
            row_keys: of the rows; the stored row of a key that is not in the table is deleted.
            now: the time to store with new pairs.
            again: the keys of rows whose pairs are searched even if the rows have not changed.
            written: the keys of rows whose last change was a write, so that they should be in the table.

        Returns:
            Row keys of candidates that differ from what is stored of them. Their pairs with these rows were
            left out: call `apply` for these keys later, and name them in `again`.

        Raises:
            RowKeyError: a row of the table is not found by its key, or two rows have the same key.
        """


class QueuedRows(Protocol):
    """Rows whose changes wait in the queue, as they are now."""

    @property
    def row_keys(self) -> Set[str]:
        """Row keys of all of them, also of rows that are gone."""

    @property
    def written_since(self) -> Set[str]:
        """Row keys of candidates that a check has found to be written or deleted after these were read."""


class Lookup(Protocol):
    """Checks records against the stored rows of one table."""

    def row_key_of(self, given: RowKey) -> str:
        """Return a caller's key as a row key.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """

    def check(
        self,
        connection: Connection,
        records: Sequence[Record],
        source_connection: Connection | None = None,
        queued: QueuedRows | None = None,
        own_keys: Sequence[str | None] | None = None,
        reserved: Sequence[Reservation] = (),
    ) -> list[CheckResult]:
        """Return for each record the stored rows that a full scan would pair with it as the latest row.

        Args:
            connection: to our tables.
            records: n records; they are not compared with each other.
            source_connection: to the user's rows; `connection` if it is left out.
            queued: rows that are compared as they are now, not as they are stored.
            own_keys: for each record its own row key, stored or not yet, or None. A row is never a duplicate
                of itself.
            reserved: records that are not stored yet, by the same recipe.
        """

    def make_ready(self) -> None:
        """Load and compile what checks need; call it before the lock of the table is taken."""

    def pack(self, connection: Connection, record: Record, others: Sequence[Reservation]) -> bytes:
        """Return what a record is compared by while it is reserved, without its text.

        Args:
            connection: to the user's rows.
            record: to reserve.
            others: the reservations that have not expired.
        """

    def pairs_among(
        self, connection: Connection, records: Sequence[Record], source_connection: Connection
    ) -> list[tuple[int, int]]:
        """Return the pairs (i, j), i < j, of positions of records that are duplicates of each other."""

    def read_queued(self, connection: Connection, row_keys: Sequence[str]) -> QueuedRows:
        """Return the rows of the queue as they are now."""

    def put(self, connection: Connection, records: Mapping[str, Record]) -> None:
        """Store the fingerprints of records under new row keys; their pairs are left to the worker.

        Raises:
            InvalidArgumentError: the table can have no row of one of the keys.
        """


class Engine(Protocol):
    """Finds the duplicates of watched tables.

    Attributes:
        name: of the engine, which is stored with its scans.
    """

    name: ClassVar[str]

    def scan(
        self, watched: WatchedTable, recipe: Recipe, key_families: Sequence[Family], row_count: int
    ) -> AbstractContextManager[PageScan | ReadingScan]:
        """Return a pass over a table.

        Args:
            watched: the settings of the table.
            recipe: the recipe of these settings, with the frozen list of frames.
            key_families: the families of its key columns.
            row_count: how many rows to expect.
        """

    def increment(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        store: FingerprintStore,
        source: Source,
        cache_bytes: int,
    ) -> Increment:
        """Return the incremental processing of a table by the recipe that is stored.

        Args:
            watched: the settings.
            recipe: the recipe of these settings, with the frozen list of frames.
            store: the stored answer.
            source: the user's table.
            cache_bytes: memory for the features of rows, so that they need not be read for every batch.
        """

    def lookup(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> Lookup:
        """Return what checks records against a table by the recipe that is stored."""

    def expanded_pairs(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        store: FingerprintStore,
        source: Source,
        connection: Connection,
        source_connection: Connection,
    ) -> Iterator[PairColumns]:
        """Yield every pair of rows whose classes of exact duplicates are the same or paired, in parts.

        Each pair comes once. A part has some thousand pairs, so that the memory does not grow with all pairs.

        Args:
            watched: the settings.
            recipe: the recipe of these settings, with the frozen list of frames.
            store: the stored answer.
            source: the user's table.
            connection: to our tables.
            source_connection: to the user's rows.
        """
