"""The slow and obvious way, to compare with."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.features import Features

Weights = Mapping[int, int]
"""The features of one row: hash -> weight."""


def features_of(rows: Sequence[Weights]) -> Features:
    """Return the rows as the flow holds them."""
    ordered = [sorted(row.items()) for row in rows]
    return Features(
        np.cumsum([0, *map(len, ordered)], dtype=np.int64),
        np.array([value for row in ordered for value, _ in row], np.uint64),
        np.array([weight for row in ordered for _, weight in row], np.int64),
    )


def similarity(measure: str, a: Weights, b: Weights) -> float:
    if not a or not b:
        return 0.0
    shared = a.keys() & b.keys()
    if measure == "jaccard":
        return len(shared) / len(a.keys() | b.keys())
    if measure == "guarded_overlap":
        smaller = min(len(a), len(b))
        is_contained = smaller >= 30 and len(shared) / smaller >= 0.8
        least = 0.5 if smaller < 30 else 0.43 if smaller < 60 else 0.3
        if len(shared) / len(a.keys() | b.keys()) < least and not is_contained:
            return 0.0
    if measure in ("overlap", "guarded_overlap"):
        return len(shared) / min(len(a), len(b))
    lengths = [sum(weight * weight for weight in row.values()) for row in (a, b)]
    return sum(a[key] * b[key] for key in shared) / math.sqrt(lengths[0] * lengths[1])


def meet(a: Collection[int], b: Collection[int]) -> bool:
    """Whether two sketches meet: a band in common, or one in twelve of the passages of the smaller one."""
    common = set(a) & set(b)
    passages = sum(value % 2 for value in common)
    least = max(1, math.ceil((min(len(a), len(b)) - 24) / 12))
    return passages < len(common) or passages >= least


def simhash(row: Weights) -> int:
    votes = [sum(w if value >> bit & 1 else -w for value, w in row.items()) for bit in range(64)]
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def near_pairs(fingerprints: NDArray[np.uint64], radius: int) -> dict[tuple[int, int], int]:
    """Return (left, right) -> distance of every pair of rows within the radius, left < right."""
    distances = np.bitwise_count(fingerprints[:, None] ^ fingerprints[None, :])
    left, right = np.nonzero(np.triu(distances <= radius, 1))
    found = zip(left.tolist(), right.tolist(), distances[left, right].tolist(), strict=True)
    return {(a, b): distance for a, b, distance in found}
