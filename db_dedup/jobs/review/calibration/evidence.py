"""The pairs that settings are scored on: those with a label, and those that some setting finds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.blocks import MAX_RADIUS
from db_dedup.flow.compare.rule import MeasuredPairs
from db_dedup.flow.matching.measured_table import MeasuredRows, find_measured, measure_pairs

UNLABELLED: Final = -1

RowPair = tuple[int, int]


@dataclass(frozen=True)
class Evidence:
    """p pairs, each with everything that decides whether a setting finds it.

    Attributes:
        labels: int8[p], 1 a duplicate, 0 none, `UNLABELLED`.
        weights: int64[p], how many pairs of rows it counts for: more than one between classes of exact
            duplicates.
        groups: int64[p], equal for pairs that are always drawn together.
        measured: by every measure.
        lengths: int64[p], characters of the shorter text.
        is_complete: every pair that some setting finds is among them.
    """

    labels: NDArray[np.int8]
    weights: NDArray[np.int64]
    groups: NDArray[np.int64]
    measured: MeasuredPairs
    lengths: NDArray[np.int64]
    is_complete: bool

    def only(self, chosen: NDArray[np.bool_]) -> "Evidence":
        """Return some of the pairs."""
        return replace(
            self,
            labels=self.labels[chosen],
            weights=self.weights[chosen],
            groups=self.groups[chosen],
            measured=self.measured.only(chosen),
            lengths=self.lengths[chosen],
        )

    def with_unlabelled_wrong(self) -> "Evidence":
        """Return the same with every pair without a label labelled as no duplicate."""
        return replace(self, labels=np.maximum(self.labels, 0).astype(np.int8))


def numbered(evidence: Evidence) -> Evidence:
    """Return the same with its groups numbered from 0."""
    _, numbers = np.unique(evidence.groups, return_inverse=True)
    return replace(evidence, groups=numbers.astype(np.int64))


def gather(rows: MeasuredRows, labelled: Mapping[RowPair, bool], at_most: int) -> Evidence:
    """Return all labelled pairs of rows, and all unlabelled ones that some setting finds.

    Args:
        rows: of the table.
        labelled: row numbers, the smaller first -> whether they are duplicates.
        at_most: the most unlabelled pairs to find.
    """
    wide, is_complete = find_measured(rows, MAX_RADIUS, at_most)
    unlabelled = _unlabelled(rows, labelled, zip(wide.left.tolist(), wide.right.tolist(), strict=True))
    known = np.array([*labelled, *unlabelled], np.int32).reshape(-1, 2)
    pairs = measure_pairs(rows, known[:, 0], known[:, 1])
    labels = [*map(int, labelled.values()), *([UNLABELLED] * len(unlabelled))]
    group_of = _components(rows, labelled)
    # A pair of two groups counts once: for either group, by the parity of its row numbers.
    owner = np.where((known[:, 0] + known[:, 1]) % 2 == 0, known[:, 0], known[:, 1])
    return Evidence(
        np.array(labels, np.int8),
        np.array([*([1] * len(labelled)), *unlabelled.values()], np.int64),
        group_of[owner],
        pairs.measured,
        np.minimum(rows.lengths[known[:, 0]], rows.lengths[known[:, 1]]),
        is_complete,
    )


def _unlabelled(
    rows: MeasuredRows, labelled: Iterable[RowPair], found: Iterable[RowPair]
) -> dict[RowPair, int]:
    """Return canonical rows -> how many pairs of rows of their two classes have no label."""
    canonical = rows.canonical_of.tolist()
    sizes = Counter(canonical)
    pairs = {(a, b): sizes[a] * sizes[b] for a, b in found}
    first_duplicate = {first: row for row, first in reversed(list(enumerate(canonical))) if row != first}
    pairs |= {(row, first_duplicate[row]): size * (size - 1) // 2 for row, size in sizes.items() if size > 1}
    for a, b in labelled:
        low, high = sorted((canonical[a], canonical[b]))
        pair = (low, first_duplicate[low]) if low == high else (low, high)
        if pair in pairs:
            pairs[pair] -= 1
    return {pair: count for pair, count in pairs.items() if count > 0}


def _components(rows: MeasuredRows, labelled: Iterable[RowPair]) -> NDArray[np.int64]:
    """Return int64[n]: equal for rows that labelled pairs connect, exact duplicates included."""
    parents = rows.canonical_of.tolist()

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return int(row)

    for a, b in labelled:
        one, other = root(a), root(b)
        parents[max(one, other)] = min(one, other)
    return np.array([root(row) for row in range(len(parents))], np.int64)
