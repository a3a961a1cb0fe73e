"""The answer of a scan as the jobs compare and write it: the batches of the engine, put together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.base import GroupBatch, LinkBatch, RowBatch, ScanAnswer
from db_dedup.flow.candidates.sketches import NO_SKETCHES, concatenate_sketches
from db_dedup.flow.matching.match import NO_ROW, Matches
from db_dedup.flow.matching.pairs import NO_PAIRS, Pairs, concatenate_pairs

_NO_ROWS = RowBatch(
    [],
    [],
    np.empty(0, np.uint64),
    np.empty(0, np.bool_),
    np.empty((0, 2), np.uint64),
    NO_SKETCHES,
    np.empty(0, np.int64),
    np.empty(0, np.int8),
)


@dataclass(frozen=True)
class ScannedRows:
    """What is known of n rows before their pairs are, numbered in the order they were received.

    Attributes:
        table: all rows.
        copy_of: int32[n], the canonical row of each exact duplicate, -1 for other rows.
        answer: of the engine; it has yet to give pairs and groups.
    """

    table: RowBatch
    copy_of: NDArray[np.int32]
    answer: ScanAnswer

    @classmethod
    def collected(cls, answer: ScanAnswer) -> Self:
        """Put the rows and links of an engine together."""
        table = _joined_rows([*answer.rows()])
        return cls(table, _linked(len(table.row_keys), answer.links()), answer)

    def with_pairs(self) -> "ScannedTable":
        """Let the engine find the pairs and groups, and put them together."""
        count = self.copy_of.size
        is_loose, is_abridged = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        pairs = _joined_pairs([*self.answer.pairs()])
        group_of = _grouped(count, self.answer.groups(), is_loose, is_abridged)
        return ScannedTable(self.table, Matches(self.copy_of, pairs, group_of, is_loose, is_abridged))


@dataclass(frozen=True)
class ScannedTable:
    """The answer of a scan for n rows, numbered in the order they were received.

    Attributes:
        table: all rows.
        matches: links of exact duplicates, pairs and groups.
    """

    table: RowBatch
    matches: Matches

    @property
    def row_keys(self) -> list[str]:
        """Return the row keys of the n rows."""
        return self.table.row_keys

    @property
    def order_values(self) -> list[str | None]:
        """Return the sortable values of the order column of the n rows."""
        return self.table.order_values


def _joined_rows(batches: Sequence[RowBatch]) -> RowBatch:
    if len(batches) == 1:  # without a copy: the sketches may be in a file
        return batches[0]
    batches = [_NO_ROWS, *batches]
    counts = [batch.sketches.counts.size for batch in batches]
    firsts = np.cumsum([0, *counts[:-1]])
    places = [
        np.where(batch.sketch_places == NO_ROW, NO_ROW, batch.sketch_places + first)
        for batch, first in zip(batches, firsts.tolist(), strict=True)
    ]
    return RowBatch(
        [key for batch in batches for key in batch.row_keys],
        [value for batch in batches for value in batch.order_values],
        np.concatenate([batch.fingerprints for batch in batches]),
        np.concatenate([batch.has_fingerprint for batch in batches]),
        np.concatenate([batch.digests for batch in batches]),
        concatenate_sketches([batch.sketches for batch in batches]),
        np.concatenate(places),
        np.concatenate([batch.forms for batch in batches]),
    )


def _joined_pairs(batches: Sequence[Pairs]) -> Pairs:
    if len(batches) == 1:
        return batches[0]
    return concatenate_pairs([NO_PAIRS, *batches])


def _linked(count: int, batches: Iterable[LinkBatch]) -> NDArray[np.int32]:
    """Return int32[count]: the canonical row of each exact duplicate, -1 for other rows."""
    copy_of = np.full(count, NO_ROW, np.int32)
    for batch in batches:
        copy_of[batch.rows] = batch.canonical
    return copy_of


def _grouped(
    count: int,
    batches: Iterable[GroupBatch],
    is_loose: NDArray[np.bool_],
    is_abridged: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return int32[count]: each row's representative, -1 for none; set the flags of representatives."""
    group_of = np.full(count, NO_ROW, np.int32)
    for batch in batches:
        group_of[batch.rows] = batch.representatives
        is_loose[batch.representatives] = batch.is_loose
        is_abridged[batch.representatives] = batch.is_abridged
    return group_of
