"""The measures that confirm a candidate pair, each with the features it compares and its lower bound.

They are those compared in P4: Jaccard, the overlap coefficient, and the cosine of the weights. Jaccard of
words and Jaccard of character 3-grams differ only in their features. A new measure is two functions and a
line in `MEASURES`; numba compiles the functions into the kernels of `kernels.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from db_dedup.records.recipe import ComparedBy

_LEAST_JACCARD: Final = 0.3
_LEAST_JACCARD_OF_SHORT: Final = 0.43
_LEAST_JACCARD_OF_SHORTEST: Final = 0.5
_LEAST_JACCARD_OF_PART: Final = 0.41
_SHORT: Final = 60
_SHORTEST: Final = 30
_SMALLEST_PART: Final = 6
_CONTAINED: Final = 0.8
_SHORT_CONTAINED: Final = 0.95
"""The overlap coefficient counts as 0 below a Jaccard similarity of 0.3.

The limit is 0.43 if the smaller set has fewer than 60 features, and 0.5 if it has fewer than 30: a short text
that shares a few phrases with another one does not quote it. The limit does not hold if the smaller set has
at least 30 features and four fifths of them are shared. If it has 6 to 29, and 95 % of them are shared, the
limit is 0.41: the half of a short text is a duplicate of it, and a smaller part is not.

Why 0.43: if five characters of forty are edited, 23 of the 38 character 3-grams of each text are shared, of
53 different ones in both: 0.434.
"""


_ROUNDING: Final = 1e-6
"""Subtracted before rounding up, so that a rounding error of floating point never excludes a pair."""


@dataclass(frozen=True)
class Measure:
    """How alike two rows are, from 0 (nothing shared) to 1.

    Attributes:
        features: the features that it compares: the words of the fingerprint, or character 3-grams.
        of_weights: False if `similarity` takes (number of shared features, number of features of the one row,
            of the other); True if it takes (inner product of the weights, squared norm of the one row, of the
            other).
        similarity: the formula. numba compiles it: arithmetic only.
        least_shared: (threshold, number of features of the one row, of the other) -> how many features the
            two rows must share to reach the threshold; 0 if there is no such bound. With the same smaller row
            it must not fall as the larger row grows. numba compiles it.
        by_length: True if two short texts are compared by their edit similarity, and two long texts in
            letters by their long grams.
    """

    features: ComparedBy
    of_weights: bool
    similarity: Callable[[float, float, float], float]
    least_shared: Callable[[float, int, int], int]
    by_length: bool = False


def jaccard(shared: float, size_a: float, size_b: float) -> float:
    """Return the share of the common features among all features of both rows."""
    return shared / (size_a + size_b - shared)


def least_shared_jaccard(threshold: float, size_a: int, size_b: int) -> int:
    """Return the least `shared` with shared / (a + b - shared) >= threshold."""
    return math.ceil(threshold / (1 + threshold) * (size_a + size_b) - _ROUNDING)


def overlap(shared: float, size_a: float, size_b: float) -> float:
    """Return the share of the common features among those of the smaller set: the overlap coefficient."""
    return shared / min(size_a, size_b)


def least_shared_overlap(threshold: float, size_a: int, size_b: int) -> int:
    """Return the least `shared` with shared / min(a, b) >= threshold."""
    return math.ceil(threshold * min(size_a, size_b) - _ROUNDING)


def overlap_with_floor(shared: float, size_a: float, size_b: float) -> float:
    """Return the overlap coefficient with a Jaccard floor: 0 below the Jaccard limit of the smaller set."""
    smaller = min(size_a, size_b)
    floor = _LEAST_JACCARD
    if smaller < _SHORT:
        floor = _LEAST_JACCARD_OF_SHORT
    if smaller < _SHORTEST:
        floor = _LEAST_JACCARD_OF_SHORTEST
        if smaller >= _SMALLEST_PART and shared >= _SHORT_CONTAINED * smaller - _ROUNDING:
            floor = _LEAST_JACCARD_OF_PART
    is_contained = smaller >= _SHORTEST and shared / smaller >= _CONTAINED
    if shared / (size_a + size_b - shared) < floor and not is_contained:
        return 0.0
    return shared / smaller


def least_shared_with_floor(threshold: float, size_a: int, size_b: int) -> int:
    """Return the larger one of the bounds by the overlap coefficient and by the Jaccard floor."""
    smaller = min(size_a, size_b)
    floor = _LEAST_JACCARD
    if smaller < _SHORT:
        floor = _LEAST_JACCARD_OF_SHORT
    if smaller < _SHORTEST:
        floor = _LEAST_JACCARD_OF_SHORTEST
    passes = math.ceil(floor / (1 + floor) * (size_a + size_b) - _ROUNDING)
    if smaller >= _SHORTEST:
        passes = min(passes, math.ceil(_CONTAINED * smaller - _ROUNDING))
    elif smaller >= _SMALLEST_PART:
        part = _LEAST_JACCARD_OF_PART / (1 + _LEAST_JACCARD_OF_PART) * (size_a + size_b)
        passes = min(passes, math.ceil(max(part, _SHORT_CONTAINED * smaller) - _ROUNDING))
    return max(math.ceil(threshold * smaller - _ROUNDING), passes)


def cosine(product: float, square_a: float, square_b: float) -> float:
    """Return the cosine of the angle between two vectors of weights."""
    # Squares past 2**53 are rounded, and the similarity of equal rows would pass 1.
    return min(1.0, product / math.sqrt(square_a * square_b))


def no_bound(threshold: float, size_a: int, size_b: int) -> int:  # noqa: ARG001 - as all bounds
    """Return 0: a single feature with a large weight may be enough."""
    return 0


NO_SIMILARITY: Final = "none"
"""Takes the place of a measure's name if every candidate pair is a duplicate pair."""

MEASURES: Final[Mapping[str, Measure]] = {
    "word_jaccard": Measure("words", False, jaccard, least_shared_jaccard),
    "char_jaccard": Measure("grams", False, jaccard, least_shared_jaccard),
    "char_overlap": Measure("grams", False, overlap_with_floor, least_shared_with_floor, by_length=True),
    "overlap": Measure("words", False, overlap, least_shared_overlap),
    "cosine": Measure("words", True, cosine, no_bound),
}
"""Name, as settings give it -> measure."""
