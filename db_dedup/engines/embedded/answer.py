"""The answer of the embedded engine: it is in memory as a whole, so each part is one batch.

The rows and the exact duplicates are known at once. The pairs are searched when they are first asked for, so
that the job can write meanwhile what does not depend on them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.base import GroupBatch, LinkBatch, RowBatch
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.matching.match import NO_ROW, Matches
from db_dedup.flow.matching.pairs import Pairs


@dataclass(frozen=True)
class EmbeddedAnswer:
    """The answer for n rows, numbered in the order they were received; see `engines.base.ScanAnswer`.

    Attributes:
        row_keys: n row keys.
        order_values: n sortable values of the order column.
        table: the rows as they were compared.
        forms: int8[n], the numbers of the rows' forms.
        copy_of: int32[n], the canonical row of each exact duplicate, -1 for other rows.
        find_matches: finds the pairs and groups.
    """

    row_keys: list[str]
    order_values: list[str | None]
    table: ComparedRows
    forms: NDArray[np.int8]
    copy_of: NDArray[np.int32]
    find_matches: Callable[[], Matches]

    @cached_property
    def matches(self) -> Matches:
        """Exact duplicates, pairs and groups."""
        return self.find_matches()

    def rows(self) -> Iterator[RowBatch]:
        """Yield all rows."""
        table = self.table
        yield RowBatch(
            self.row_keys,
            self.order_values,
            table.fingerprints,
            table.has_fingerprint,
            table.digests,
            table.sketches,
            table.sketch_places,
            self.forms,
        )

    def links(self) -> Iterator[LinkBatch]:
        """Yield all exact duplicates."""
        yield LinkBatch.of(self.copy_of)

    def pairs(self) -> Iterator[Pairs]:
        """Yield all pairs."""
        yield self.matches.pairs

    def groups(self) -> Iterator[GroupBatch]:
        """Yield all rows that are in a group."""
        rows = np.flatnonzero(self.matches.group_of != NO_ROW).astype(np.int32)
        representatives = self.matches.group_of[rows]
        is_loose, is_abridged = self.matches.is_loose, self.matches.is_abridged
        yield GroupBatch(rows, representatives, is_loose[representatives], is_abridged[representatives])
