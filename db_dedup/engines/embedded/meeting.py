"""Stored rows whose sketches meet some others."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.sketches import Sketches, meetings
from db_dedup.store.bands import find_sharing
from db_dedup.store.fingerprints import FingerprintStore

_PAIRS_A_PIECE: Final = 2_000_000


class Met(NamedTuple):
    """p pairs of an asked sketch and a row that it meets, each once.

    Attributes:
        which: int64[p], positions of the asked sketches.
        ids: int64[p], of the rows.
        fingerprints: uint64[p], of the rows.
    """

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]


def find_meeting(connection: Connection, store: FingerprintStore, asked: Sketches) -> Iterator[Met]:
    """The rows that some sketches meet, some rows at a time in the order of their ids."""
    most_rows = max(1, _PAIRS_A_PIECE // max(1, asked.counts.size))
    for sharing in find_sharing(connection, store, asked.values):
        for part in sharing.parts(most_rows):
            which, rows = meetings(asked, part.values, part.rows, part.counts)
            yield Met(which, part.ids[rows], part.fingerprints[rows])
