"""Find every pair of rows that shares enough features, without the filters that the benchmarks measure.

An inverted index of the features counts how many features each row shares with every later row.
"""

from dataclasses import dataclass

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.kernels import similarities
from db_dedup.flow.features.counting import Features


@dataclass(frozen=True)
class SimilarPairs:
    """p pairs of rows, left before right, with two measures of each."""

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    similarities: NDArray[np.float64]
    jaccards: NDArray[np.float64]


def similar_pairs(features: Features, measure: str, threshold: float) -> SimilarPairs:
    """All pairs whose similarity reaches the threshold.

    Args:
        features: of n rows; the time grows with the sum of squares of how many rows have each feature.
        measure: one of `similarity.MEASURES`, none above the overlap.
        threshold: above 0.
    """
    _, numbers = np.unique(features.hashes, return_inverse=True)
    numbers = numbers.astype(np.int32)
    sizes = np.bincount(numbers)
    rows = np.repeat(np.arange(features.counts.size, dtype=np.int32), features.counts)
    left, right = _sharing(
        features.starts,
        numbers,
        rows[np.argsort(numbers, kind="stable")],
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        threshold,
    )
    found = similarities(measure, features.starts, features.hashes, features.weights, left, right)
    is_similar = found >= threshold
    left, right = left[is_similar], right[is_similar]
    jaccards = similarities("word_jaccard", features.starts, features.hashes, features.weights, left, right)
    return SimilarPairs(left, right, found[is_similar], jaccards)


def rows_of(features: Features, rows: NDArray[np.int64]) -> Features:
    """The features of these rows alone, which are ascending."""
    is_wanted = np.zeros(features.counts.size, np.bool_)
    is_wanted[rows] = True
    kept = np.repeat(is_wanted, features.counts)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(features.counts[rows])])
    return Features(starts, features.hashes[kept], features.weights[kept])


@nb.njit(cache=True, nogil=True)
def _sharing(starts, numbers, rows, ends, threshold):  # type: ignore[no-untyped-def]
    """Pairs that share the threshold's part of the smaller row.

    `rows` are the rows of each feature, ascending, feature f's from ends[f] to ends[f + 1].
    """
    count = starts.size - 1
    seen = ends[:-1].copy()  # where the rows after the present one begin, by feature
    shared = np.zeros(count, np.int32)
    touched = np.empty(count, np.int32)
    left, right = np.empty(1024, np.int32), np.empty(1024, np.int32)
    found = 0
    for a in range(count):
        used = 0
        for place in range(starts[a], starts[a + 1]):
            feature = numbers[place]
            seen[feature] += 1
            for later in range(seen[feature], ends[feature + 1]):
                b = rows[later]
                if shared[b] == 0:
                    touched[used] = b
                    used += 1
                shared[b] += 1
        size = starts[a + 1] - starts[a]
        for i in range(used):
            b = touched[i]
            smaller = min(size, starts[b + 1] - starts[b])
            if shared[b] >= threshold * smaller - 1e-6:
                if found == left.size:
                    left = np.concatenate((left, np.empty_like(left)))
                    right = np.concatenate((right, np.empty_like(right)))
                left[found], right[found] = a, b
                found += 1
            shared[b] = 0
    return left[:found].copy(), right[:found].copy()
