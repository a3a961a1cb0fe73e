"""The sets of features beside the segments, kept in memory, compared with the features of asked rows.

A set there is that of its row's text when the segments were written. It counts only for a row that has not
changed since: one of which no single entry was found among its hashes and whose bit is not set, or for which
the stored row tells it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from db_dedup.flow.compare.feature_sets import AskedFeatures, PackedSets, may_be_alike
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segment_lookup import IndexMemory, read_sets
from db_dedup.store.segments import Generation, translate_damage
from db_dedup.store.sketch_lookup import have_sets_in


class Compared(NamedTuple):
    """What the sets tell of p pairs of an asked row and one of r stored rows.

    Attributes:
        may: bool[p], which pairs may be duplicates.
        has_set: bool[r], which stored rows were compared by a set.
    """

    may: NDArray[np.bool_]
    has_set: NDArray[np.bool_]


@dataclass(frozen=True)
class SegmentSets:
    """The sets of a generation.

    Attributes:
        connection: to read through.
        store: whose rows.
        generation: of the segments.
        features: of the asked rows.
        memory: of former look-ups; some more sets are added.
    """

    connection: Connection
    store: FingerprintStore
    generation: Generation
    features: AskedFeatures
    memory: IndexMemory

    def compare(
        self,
        which: NDArray[np.int64],
        places: NDArray[np.int64],
        ids: NDArray[np.int64],
        is_compared: NDArray[np.bool_],
    ) -> Compared:
        """Compare p pairs, as far as the sets are in memory now.

        Args:
            which: int64[p], positions of the asked rows.
            places: int64[p], positions of the stored rows.
            ids: int64[r], of the stored rows, ascending.
            is_compared: bool[r], for which of them the set counts.
        """
        in_pairs = np.zeros(ids.size, np.bool_)
        in_pairs[places] = True
        rows = np.flatnonzero(in_pairs & is_compared)
        found = read_sets(self.connection, self.store, self.generation, ids[rows], self.memory)
        begins, ends = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.int64)
        begins[rows], ends[rows] = found.begins, found.ends
        with translate_damage():
            sets = PackedSets(found.packed, begins, ends)
            may = may_be_alike(self.features, which, places, sets, self.memory.threads)
        return Compared(may, begins < ends)

    def allow(self, which: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool[p]: which pairs the sets allow, whether they count or not.

        Args:
            which: int64[p], positions of the asked rows.
            ids: int64[p], of the stored rows.
        """
        distinct, places = np.unique(ids, return_inverse=True)
        return self.compare(which, places, distinct, np.ones(distinct.size, np.bool_)).may

    def rule_out(self, which: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return bool[p]: which pairs the sets that count rule out, by what the stored rows tell.

        Args:
            which: int64[p], positions of the asked rows.
            ids: int64[p], of the stored rows.
        """
        out = ~self.allow(which, ids)
        doubted = np.unique(ids[out])
        counts = have_sets_in(self.connection, self.store, self.generation, doubted)
        return out & np.isin(ids, doubted[counts])
