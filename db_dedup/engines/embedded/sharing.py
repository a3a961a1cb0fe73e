"""Find the stored rows whose sketches may share enough hashes with some others.

The index has 32 bits of each hash, and hashes that a row had before it changed. So every row that shares
enough hashes is found, and a few others. The caller compares the sketches of the texts, which it reads
anyway, by `are_proposed`. Most rows share no more than a set phrase. Those that cannot be similar enough by
the sets of their features are left out before anything else is read of them.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.candidates.segments import narrowed
from db_dedup.flow.candidates.sketches import Sketches, share_enough_each, sharing_pairs
from db_dedup.flow.compare.feature_sets import AskedFeatures, may_be_alike
from db_dedup.store import segments
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.sketches import find_sharing

_PAIRS_A_PIECE: Final = 2_000_000


class SharingRows(NamedTuple):
    """p pairs of an asked sketch and a row whose sketch may share enough hashes with it, each pair once.

    Attributes:
        which: int64[p], positions of the asked sketches.
        ids: int64[p], of the rows.
        fingerprints: uint64[p], of the rows.
    """

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]


def find_sharing_rows(
    connection: Connection, store: FingerprintStore, asked: Sketches, features: AskedFeatures | None = None
) -> Iterator[SharingRows]:
    """Yield the stored rows that may share enough hashes with some sketches, in parts, ordered by row id.

    Args:
        connection: to read through.
        store: whose rows.
        asked: n sketches.
        features: of the n rows that have these sketches; rows that are certainly no duplicates are left out.
            None leaves out none.
    """
    hashes = narrowed(asked)
    most_rows = max(1, _PAIRS_A_PIECE // max(1, asked.counts.size))
    for sharing in find_sharing(connection, store, asked.values):
        for part in sharing.parts(most_rows):
            which, rows = sharing_pairs(hashes, part.values, part.rows, part.counts)
            if features is not None:
                with segments.translate_damage():
                    may = may_be_alike(features, which, rows, part.feature_sets)
                which, rows = which[may], rows[may]
            yield SharingRows(which, part.ids[rows], part.fingerprints[rows])


def are_proposed(
    sketches: Sketches,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    distances: NDArray[np.integer[Any]],
    radius: int,
) -> NDArray[np.bool_]:
    """Return bool[p]: which pairs some generator proposes, by the rows' own fingerprints and sketches.

    Args:
        sketches: of all rows.
        left: int32[p], positions of sketches.
        right: int32[p], the same.
        distances: int[p], of the fingerprints, in bits.
        radius: of the rule.
    """
    are_proposed: NDArray[np.bool_] = distances <= radius
    others = np.flatnonzero(~are_proposed)
    are_proposed[others] = share_enough_each(sketches, left[others], right[others])
    return are_proposed
