"""All that the index of sketches has, row by row: for `verify`."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from db_dedup.flow.candidates.segments import Entries, add_to_sums, hashes_of
from db_dedup.store import segments
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from db_dedup.store.sketches import SketchedRows, read_sketched_rows

_PIECES_A_STEP: Final = 4_000
_ROWS_A_FETCH: Final = 100_000


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
            DedupError: a piece is damaged.
        """
        rows = read_sketched_rows(Reader.of(connection), store)
        sums, count = np.zeros(rows.ids.size, np.uint64), 0
        generation = segments.find_generation(connection, store)
        for first in range(0, 0 if generation is None else generation.piece_count, _PIECES_A_STEP):
            assert generation is not None  # noqa: S101 - the range is empty without one
            packed = segments.read_pieces(connection, store, generation, first, first + _PIECES_A_STEP)
            # What the segments have of other rows is out of date.
            settled = rows.ids[~rows.is_single]
            chosen = np.isin(packed.ids, settled)
            count += _add(rows, sums, Entries(packed.hashes[chosen], packed.ids[chosen]))
        row, band = store.tables.fingerprint, store.tables.band
        query = select(band.c.value, band.c.fingerprint_id).join(row, row.c.id == band.c.fingerprint_id)
        found = connection.execute(query.where(store.mine).execution_options(yield_per=_ROWS_A_FETCH))
        for some in found.partitions():
            entries = np.array(some, np.int64).reshape(-1, 2)
            hashes = hashes_of(np.ascontiguousarray(entries[:, 0]).view(np.uint64))
            own = np.isin(entries[:, 1], rows.ids)
            _add(rows, sums, Entries(hashes[own], entries[own, 1]))
            count += entries.shape[0]
        return cls(rows, sums, count)

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


def _add(rows: SketchedRows, sums: NDArray[np.uint64], entries: Entries) -> int:
    """Add entries of these rows to their checksums; return how many there are."""
    add_to_sums(sums, np.searchsorted(rows.ids, entries.ids), entries.hashes)
    return int(entries.ids.size)
