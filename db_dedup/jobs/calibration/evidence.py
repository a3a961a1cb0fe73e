"""The pairs that settings are judged by: those with a label, and those that some setting finds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.engines.embedded.wide_table import WideRows, find_wide, score_pairs
from db_dedup.flow.candidates import MAX_RADIUS

UNLABELLED: Final = -1

RowPair = tuple[int, int]


@dataclass(frozen=True)
class Evidence:
    """p pairs, each with all that a setting could ask of it.

    Attributes:
        labels: int8[p], 1 a duplicate, 0 none, `UNLABELLED`.
        weights: int64[p], for how many pairs of rows it stands: those of two classes of copies are one.
        groups: int64[p], equal for pairs that must not be torn apart when labels are drawn.
        distances: int16[p], bits.
        shares_band: bool[p].
        scores: every measure by its name, float64[p].
        lengths: int64[p], characters of the shorter text.
        is_complete: every pair that some setting finds is among them.
    """

    labels: NDArray[np.int8]
    weights: NDArray[np.int64]
    groups: NDArray[np.int64]
    distances: NDArray[np.int16]
    shares_band: NDArray[np.bool_]
    scores: dict[str, NDArray[np.float64]]
    lengths: NDArray[np.int64]
    is_complete: bool

    def only(self, chosen: NDArray[np.bool_]) -> "Evidence":
        """Some of the pairs."""
        return replace(
            self,
            labels=self.labels[chosen],
            weights=self.weights[chosen],
            groups=self.groups[chosen],
            distances=self.distances[chosen],
            shares_band=self.shares_band[chosen],
            scores={name: scores[chosen] for name, scores in self.scores.items()},
            lengths=self.lengths[chosen],
        )

    def with_unlabelled_wrong(self) -> "Evidence":
        """As if every pair without a label were labelled as none."""
        return replace(self, labels=np.maximum(self.labels, 0).astype(np.int8))


def numbered(evidence: Evidence) -> Evidence:
    """The same with its groups numbered from 0."""
    _, numbers = np.unique(evidence.groups, return_inverse=True)
    return replace(evidence, groups=numbers.astype(np.int64))


def gather(rows: WideRows, labelled: Mapping[RowPair, bool], at_most: int) -> Evidence:
    """All labelled pairs of rows, and all that settings find and nobody has labelled.

    Args:
        rows: of the table.
        labelled: row numbers, the smaller first -> whether they are duplicates.
        at_most: so many unlabelled pairs.
    """
    wide, is_complete = find_wide(rows, MAX_RADIUS, at_most)
    unlabelled = _unlabelled(rows, labelled, zip(wide.left.tolist(), wide.right.tolist(), strict=True))
    known = np.array([*labelled, *unlabelled], np.int32).reshape(-1, 2)
    pairs = score_pairs(rows, known[:, 0], known[:, 1])
    labels = [*map(int, labelled.values()), *([UNLABELLED] * len(unlabelled))]
    group_of = _components(rows, labelled)
    # A pair of two groups counts once, for one of them as for the other.
    owner = np.where((known[:, 0] + known[:, 1]) % 2 == 0, known[:, 0], known[:, 1])
    return Evidence(
        np.array(labels, np.int8),
        np.array([*([1] * len(labelled)), *unlabelled.values()], np.int64),
        group_of[owner],
        pairs.distances,
        pairs.shares_band,
        pairs.scores,
        np.minimum(rows.lengths[known[:, 0]], rows.lengths[known[:, 1]]),
        is_complete,
    )


def _unlabelled(rows: WideRows, labelled: Iterable[RowPair], found: Iterable[RowPair]) -> dict[RowPair, int]:
    """Two rows that stand for their classes of copies -> how many pairs of rows have no label."""
    heads = rows.head_of.tolist()
    sizes = Counter(heads)
    pairs = {(a, b): sizes[a] * sizes[b] for a, b in found}
    first_copy = {head: row for row, head in reversed(list(enumerate(heads))) if row != head}
    pairs |= {(head, first_copy[head]): size * (size - 1) // 2 for head, size in sizes.items() if size > 1}
    for a, b in labelled:
        low, high = sorted((heads[a], heads[b]))
        pair = (low, first_copy[low]) if low == high else (low, high)
        if pair in pairs:
            pairs[pair] -= 1
    return {pair: count for pair, count in pairs.items() if count > 0}


def _components(rows: WideRows, labelled: Iterable[RowPair]) -> NDArray[np.int64]:
    """int64[n]: equal for rows that labelled pairs connect, copies included."""
    parents = rows.head_of.tolist()

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return int(row)

    for a, b in labelled:
        one, other = root(a), root(b)
        parents[max(one, other)] = min(one, other)
    return np.array([root(row) for row in range(len(parents))], np.int64)
