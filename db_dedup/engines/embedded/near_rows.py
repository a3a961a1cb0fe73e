"""The rows that a look-up in the indexes finds for some records, before anything of these rows is read."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from db_dedup.store.lookup import StoredRow
from db_dedup.store.segments import Generation


class NearRows:
    """Ids of the rows that may be candidates of n records, and which of them sets of features rule out."""

    def __init__(self, count: int) -> None:
        """Begin without rows, for so many records."""
        self._ids: list[set[int]] = [set() for _ in range(count)]
        self._ruled_out: list[set[int]] = [set() for _ in range(count)]
        self._generation: Generation | None = None

    def add(self, which: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        """Add p rows: int64[p] positions of records, int64[p] ids of rows."""
        for one, row_id in zip(which.tolist(), ids.tolist(), strict=True):
            self._ids[one].add(row_id)

    def rule_out(self, which: NDArray[np.int64], ids: NDArray[np.int64], generation: Generation) -> None:
        """Note p rows, already added, that the sets beside the segments of this generation rule out."""
        self._generation = generation
        for one, row_id in zip(which.tolist(), ids.tolist(), strict=True):
            self._ruled_out[one].add(row_id)

    def all_ids(self) -> list[int]:
        """Return the ids of all rows, ascending."""
        return sorted(set().union(*self._ids))

    def left(self, rows: Iterable[StoredRow]) -> list[set[int]]:
        """Return for each record the ids that are not ruled out.

        A set counts only for a row whose present features it has, as the row itself tells. A row that has
        too little text now may be in the index of sketches by its former text; it is no candidate.

        Args:
            rows: what is stored of the rows now.
        """
        number = self._generation and self._generation.number
        takes_part = {row.id: row.set_generation for row in rows if row.fingerprint is not None}
        has_set = {i for i, own in takes_part.items() if own is not None and own == number}
        return [
            (ids & takes_part.keys()) - (ruled & has_set)
            for ids, ruled in zip(self._ids, self._ruled_out, strict=True)
        ]
