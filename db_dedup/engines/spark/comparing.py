"""Compare rows on the executors: each task has the rows that it compares, with all that the rule compares.

A task decides by the same kernels as one machine does. First pairs are confirmed only to learn which rows are
in one group. Then all rows of a group are in one task, which matches them as the embedded engine matches a
whole table: it gives the pairs, the flags, and of a large group the pairs that connect it.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from db_dedup.engines.spark.columns import COMPARED, arrow_types, compared_rows
from db_dedup.flow.compare.rows import ComparedRows
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import NO_ROW, Matches, connecting_pairs, duplicates_among, match_table
from db_dedup.flow.matching.rejections import rejected_rows
from db_dedup.progress import NullProgress
from db_dedup.records.fingerprints import DigestPair

NUMBERED: Final = f"number int, within int, digest binary, sketch binary, {COMPARED}"
"""A canonical row with its number, as Spark declares it."""

EDGES: Final = "a int, b int"
"""Pairs of rows that are in one group."""

MATCHED: Final = "kind byte, a int, b int, distance short, similarity double, flags short"
"""`PAIR`: a pair and its packed kind. `MEMBER`: a row, its representative, and the flags of their group."""

PAIR: Final = 0
MEMBER: Final = 1
LOOSE: Final = 1
ABRIDGED: Final = 2


class Comparison(NamedTuple):
    """How rows are compared, sent to the executors.

    Attributes:
        rule: decides.
        abridge_above: a group of more canonical rows keeps only the pairs that connect it.
        rejected: pairs of texts that people labelled as no duplicates.
    """

    rule: Rule
    abridge_above: int
    rejected: Collection[DigestPair]

    def rows(self, table: pa.Table) -> tuple[NDArray[np.int32], ComparedRows]:
        """Return (int32[n] ascending numbers, the rows in this order)."""
        numbers, rows = compared_rows(table)
        return numbers, replace(rows, rejected=rejected_rows(rows.digests, self.rejected))


def confirm(comparison: Comparison, pairs: pa.Table, rows: pa.Table) -> pa.Table:
    """Return the pairs that are duplicates.

    Args:
        comparison: how rows are compared.
        pairs: numbers of rows, `a` and `b`.
        rows: these rows; a pair of a row that is not there any more is left out.
    """
    if not pairs.num_rows or not rows.num_rows:
        return _edges(np.empty(0, np.int32), np.empty(0, np.int32))
    numbers, compared = comparison.rows(rows)
    a, b = (np.array(pairs.column(name).to_numpy(), np.int32) for name in ("a", "b"))
    is_there = np.isin(a, numbers) & np.isin(b, numbers)
    a, b = a[is_there], b[is_there]
    left, right = (np.searchsorted(numbers, each).astype(np.int32) for each in (a, b))
    is_duplicate = duplicates_among(compared, comparison.rule, left, right)
    return _edges(a[is_duplicate], b[is_duplicate])


def connect(comparison: Comparison, rows: pa.Table) -> pa.Table:
    """Return pairs that connect all groups among some rows."""
    numbers, compared = comparison.rows(rows)
    left, right = connecting_pairs(compared, comparison.rule, NullProgress())
    return _edges(numbers[left], numbers[right])


def match(comparison: Comparison, rows: pa.Table) -> pa.Table:
    """Return the pairs and the groups among rows of which all groups are complete."""
    numbers, compared = comparison.rows(rows)
    found = match_table(compared, comparison.rule, comparison.abridge_above, NullProgress())
    pairs = found.pairs
    members = np.flatnonzero(found.group_of != NO_ROW)
    representatives = found.group_of[members]
    none = np.zeros(members.size)
    return pa.table(
        {
            "kind": np.repeat(np.array([PAIR, MEMBER], np.int8), [pairs.left.size, members.size]),
            "a": np.concatenate([numbers[pairs.left], numbers[members]]),
            "b": np.concatenate([numbers[pairs.right], numbers[representatives]]),
            "distance": np.concatenate([pairs.distances, none]).astype(np.int16),
            "similarity": np.concatenate([pairs.similarities, none]),
            "flags": np.concatenate([pairs.kinds, _flags(found, representatives)]).astype(np.int16),
        }
    )


def nothing_matched() -> pa.Table:
    """Return what `match` returns where there are no rows."""
    return pa.table({name: pa.array([], kind) for name, kind in arrow_types(MATCHED).items()})


def _flags(found: Matches, representatives: NDArray[np.int32]) -> NDArray[np.int16]:
    flags = LOOSE * found.is_loose[representatives] + ABRIDGED * found.is_abridged[representatives]
    return flags.astype(np.int16)


def _edges(a: NDArray[np.int32], b: NDArray[np.int32]) -> pa.Table:
    return pa.table({"a": a.astype(np.int32), "b": b.astype(np.int32)})
