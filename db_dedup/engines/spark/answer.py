"""The answer of the Spark engine, as the driver has it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db_dedup.engines.base import GroupBatch, LinkBatch, RowBatch
from db_dedup.engines.spark.comparing import ABRIDGED, LOOSE, MEMBER, PAIR
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.matching.match import NO_ROW, add_exact_duplicates
from db_dedup.flow.matching.pairs import Pairs


@dataclass(frozen=True)
class SparkAnswer:
    """The answer for n rows, numbered in the order they were received; see `engines.base.ScanAnswer`.

    Attributes:
        row_keys: n row keys.
        order_values: n sortable values of the order column.
        fingerprints: uint64[n].
        has_fingerprint: bool[n].
        digests: uint64[n, 2].
        sketches: of the rows, in the order they were read.
        sketch_places: int64[n], each row's number among the sketches; -1 for none.
        forms: int8[n], the numbers of the rows' forms.
        copy_of: int32[n], the canonical row of each exact duplicate, -1 for other rows.
        matched: pairs and groups of canonical rows, as `comparing.MATCHED` has them.
    """

    row_keys: list[str]
    order_values: list[str | None]
    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: NDArray[np.uint64]
    sketches: Sketches
    sketch_places: NDArray[np.int64]
    forms: NDArray[np.int8]
    copy_of: NDArray[np.int32]
    matched: pa.Table

    def rows(self) -> Iterator[RowBatch]:
        """Yield all rows."""
        yield RowBatch(
            self.row_keys,
            self.order_values,
            self.fingerprints,
            self.has_fingerprint,
            self.digests,
            self.sketches,
            self.sketch_places,
            self.forms,
        )

    def links(self) -> Iterator[LinkBatch]:
        """Yield all exact duplicates."""
        yield LinkBatch.of(self.copy_of)

    def pairs(self) -> Iterator[Pairs]:
        """Yield all pairs."""
        kind, left, right, flags = (self._column(name) for name in ("kind", "a", "b", "flags"))
        is_pair = kind == PAIR
        distances, similarities = self._column("distance"), self._column("similarity")
        yield Pairs(
            left[is_pair].astype(np.int32),
            right[is_pair].astype(np.int32),
            distances[is_pair].astype(np.int16),
            similarities[is_pair].astype(np.float64),
            flags[is_pair].astype(np.uint8),
        )

    def groups(self) -> Iterator[GroupBatch]:
        """Yield all rows that are in a group."""
        kind, rows, representatives, flags = (self._column(name) for name in ("kind", "a", "b", "flags"))
        is_member = kind == MEMBER
        group_of = np.full(self.copy_of.size, NO_ROW, np.int32)
        group_of[rows[is_member]] = representatives[is_member]
        flags_of = np.zeros(self.copy_of.size, np.int16)
        flags_of[representatives[is_member]] = flags[is_member]
        add_exact_duplicates(group_of, self.copy_of)
        members = np.flatnonzero(group_of != NO_ROW).astype(np.int32)
        own = flags_of[group_of[members]]
        yield GroupBatch(members, group_of[members], (own & LOOSE) > 0, (own & ABRIDGED) > 0)

    def _column(self, name: str) -> NDArray[np.generic]:
        return np.array(self.matched.column(name).to_numpy())
