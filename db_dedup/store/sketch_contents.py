"""All that the index of sketches has, row by row: for `verify`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from db_dedup.errors import DedupError
from db_dedup.flow.candidates.segments import Entries, add_to_sums, hashes_of, sort_entries
from db_dedup.flow.candidates.sketch_sizes import MOST_SIZE, UNKNOWN_SIZE
from db_dedup.store import segments
from db_dedup.store.changed_rows import read_changed
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from db_dedup.store.segment_lookup import IndexMemory, read_all_sets, read_sizes
from db_dedup.store.segments import Generation
from db_dedup.store.sketches import (
    SketchedRows,
    read_feature_sets,
    read_single_sketches,
    read_sketched_rows,
)
from db_dedup.store.streams import parts_of

_PIECES_A_STEP: Final = 4_000
_ROWS_A_FETCH: Final = 100_000
_SETS_A_STEP: Final = 20_000


@dataclass(frozen=True)
class IndexContents:
    """The index of a table under one recipe.

    Attributes:
        rows: the n rows that have a sketch.
        sums: uint64[n], a checksum of the entries of each.
        entry_count: how many entries they have, and others that are not where they should be.
    """

    rows: SketchedRows
    sums: NDArray[np.uint64]
    entry_count: int

    @classmethod
    def read(cls, connection: Connection, store: FingerprintStore) -> Self:
        """Read and unpack everything.

        Raises:
            DedupError: a piece, or what is beside the segments, is damaged.
        """
        rows = read_sketched_rows(Reader.of(connection), store)
        packed, single = _Sums(rows.ids), _Sums(rows.ids)
        changed = _ChangedEntries(connection, store, rows)
        generation = segments.find_generation(connection, store)
        for first in range(0, 0 if generation is None else generation.piece_count, _PIECES_A_STEP):
            assert generation is not None  # noqa: S101 - the range is empty without one
            last = first + _PIECES_A_STEP
            entries = segments.read_pieces(connection, store, generation, first, last)
            packed.add(entries)
            changed.add_packed(entries)
        if generation is not None:
            _require_sizes(connection, store, generation, rows)
            _require_sets(connection, store, generation, rows)
        stray = sum(map(changed.add_single, _single_entries(connection, store)))
        single.add(changed.found())
        # A folding that was interrupted may have deleted single entries whose rows still have their sketches.
        is_single = rows.is_single & ((single.counts == rows.sizes) | (packed.counts != rows.sizes))
        counts = np.where(is_single, single.counts, packed.counts)
        sums = np.where(is_single, single.sums, packed.sums)
        return cls(rows, sums, int(counts.sum()) + stray)

    @property
    def wanted_count(self) -> int:
        """How many entries the rows should have."""
        return int(self.rows.sizes.sum())

    def differing(
        self, ids: NDArray[np.int64], sizes: NDArray[np.int64], sums: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """Return bool[n]: which rows have another sketch than the one given.

        Args:
            ids: int64[n], of stored rows.
            sizes: int64[n], how many hashes each should have; -1 for no sketch.
            sums: uint64[n], the checksums of these.
        """
        own = self.rows.aligned(ids)
        has = own.sizes >= 0
        own_sums = np.zeros(ids.size, np.uint64)
        own_sums[has] = self.sums[np.searchsorted(self.rows.ids, ids[has])]
        differs: NDArray[np.bool_] = (own.sizes != sizes) | (has & (own_sums != sums))
        return differs


class _Sums:
    """Checksums and numbers of the entries of n rows; entries of other rows are left out."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self._ids = ids
        self.sums, self.counts = np.zeros(ids.size, np.uint64), np.zeros(ids.size, np.int64)

    def add(self, entries: Entries) -> None:
        """Add some entries."""
        is_own = np.isin(entries.ids, self._ids)
        rows = np.searchsorted(self._ids, entries.ids[is_own])
        add_to_sums(self.sums, rows, entries.hashes[is_own])
        self.counts += np.bincount(rows, minlength=self._ids.size)


class _ChangedEntries:
    """The entries that the rows should have that have changed since the segments were written.

    Each is a single entry, or in the segments if the bit of its row tells that it has changed.
    """

    def __init__(self, connection: Connection, store: FingerprintStore, rows: SketchedRows) -> None:
        self._wanted = sort_entries(read_single_sketches(Reader.of(connection), store))
        self._ids = rows.ids[rows.is_single]
        self._keys = self._keys_of(self._wanted)
        self._is_found = np.zeros(self._keys.size, np.bool_)
        self._changed = read_changed(connection, store, self._ids)

    def add_packed(self, entries: Entries) -> None:
        """Take note of entries of the segments."""
        self._find(entries.only(self._changed.are(entries.ids)))

    def add_single(self, entries: Entries) -> int:
        """Take note of single entries; return how many should not be there."""
        return entries.ids.size - self._find(entries)

    def found(self) -> Entries:
        """Return the entries that are in either place."""
        firsts = np.searchsorted(self._keys, self._keys)  # two hashes of a row may be equal in 32 bits
        return self._wanted.only(self._is_found[firsts])

    def _find(self, entries: Entries) -> int:
        """Note these entries; return how many of them should be there."""
        if not self._keys.size:
            return 0
        keys = self._keys_of(entries.only(np.isin(entries.ids, self._ids)))
        places = np.searchsorted(self._keys[:-1], keys)
        are_wanted = self._keys[places] == keys
        self._is_found[places[are_wanted]] = True
        return int(np.count_nonzero(are_wanted))

    def _keys_of(self, entries: Entries) -> NDArray[np.uint64]:
        """Return a number for hash and row of each entry, in their order."""
        ranks = np.searchsorted(self._ids, entries.ids).astype(np.uint64)
        return entries.hashes.astype(np.uint64) * np.uint64(self._ids.size) + ranks


def _require_sizes(
    connection: Connection, store: FingerprintStore, generation: Generation, rows: SketchedRows
) -> None:
    """Check the sizes beside the segments; one that is not stored is read from its row, and is no damage.

    Raises:
        DedupError: one is another than its row has: a look-up may leave out a row that it should find.
    """
    sizes = read_sizes(connection, store, generation, rows.ids, IndexMemory())
    is_wrong = (sizes != UNKNOWN_SIZE) & (sizes != np.minimum(rows.sizes, MOST_SIZE)) & ~rows.is_single
    if np.any(is_wrong):
        raise DedupError("the sizes beside the index of sketches are wrong")


def _require_sets(
    connection: Connection, store: FingerprintStore, generation: Generation, rows: SketchedRows
) -> None:
    """Check the sets beside the segments; one that is not stored is read from its row, and is no damage.

    Raises:
        DedupError: one is another than its row has: a look-up may leave out a row that it should find.
    """
    settled = rows.ids[~rows.is_single]
    for first in range(0, settled.size, _SETS_A_STEP):
        ids = settled[first : first + _SETS_A_STEP]
        stored = read_feature_sets(connection, store, (int(ids[0]), int(ids[-1])))
        own = dict(zip(stored.ids.tolist(), stored.sets, strict=True))
        beside = read_all_sets(connection, store, generation, ids)
        if any(packed and packed != own.get(row_id) for row_id, packed in beside.items()):
            raise DedupError("the sets of features beside the index of sketches are wrong")


def _single_entries(connection: Connection, store: FingerprintStore) -> Iterator[Entries]:
    row, band = store.tables.fingerprint, store.tables.band
    query = select(band.c.value, band.c.fingerprint_id).join(row, row.c.id == band.c.fingerprint_id)
    for some in parts_of(connection, query.where(store.mine), _ROWS_A_FETCH):
        entries = np.array(some, np.int64).reshape(-1, 2)
        yield Entries(hashes_of(np.ascontiguousarray(entries[:, 0]).view(np.uint64)), entries[:, 1])
