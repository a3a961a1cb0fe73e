"""Find the stored rows whose sketches share enough hashes with some others."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.candidates.sketches import Sketches, sharing_pairs
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.sketches import find_sharing

_PAIRS_A_PIECE: Final = 2_000_000


class SharingRows(NamedTuple):
    """p pairs of an asked sketch and a row whose sketch shares enough hashes with it, each pair once.

    Attributes:
        which: int64[p], positions of the asked sketches.
        ids: int64[p], of the rows.
        fingerprints: uint64[p], of the rows.
    """

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]


def find_sharing_rows(
    connection: Connection, store: FingerprintStore, asked: Sketches
) -> Iterator[SharingRows]:
    """Yield the stored rows that share enough hashes with some sketches, in parts, ordered by row id."""
    most_rows = max(1, _PAIRS_A_PIECE // max(1, asked.counts.size))
    for sharing in find_sharing(connection, store, asked.values):
        for part in sharing.parts(most_rows):
            which, rows = sharing_pairs(asked, part.values, part.rows, part.counts)
            yield SharingRows(which, part.ids[rows], part.fingerprints[rows])
