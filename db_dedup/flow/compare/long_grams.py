"""How alike two texts in letters are, by their long grams.

If each character is edited with the same small probability, a run of three characters stays whole with the
third power of the rest, a run of five with the fifth. So the share of the long grams, raised to the power
3/5, is about what the share of the 3-grams would be if the two texts shared nothing by chance; one threshold
fits both. docs/decisions/0049-long-grams.md has the measurements.
"""

import math
from typing import Final

from db_dedup.flow._compiled import inner

LONG: Final = 100
VERY_LONG: Final = 300
"""Two rows are compared by their long grams if both have `LONG` of them, or one has `VERY_LONG`.

A very long text has most 3-grams of any short one.
"""

_POWER: Final = 3 / 5
_LEAST_JACCARD: Final = 0.2
_CONTAINED: Final = 0.7
_SHORT_CONTAINED: Final = 0.8
"""The similarity is 0 below a Jaccard floor of 0.2, unless 0.7 of the smaller set is shared.

It must be 0.8 if the smaller set has fewer than `LONG`: a very long text has many common phrases.
"""
_ROUNDING: Final = 1e-6


@inner
def are_long(size_a, size_b):
    """Return whether two rows with so many long grams are compared by these."""
    smaller, larger = min(size_a, size_b), max(size_a, size_b)
    return smaller > 0 and (smaller >= LONG or larger >= VERY_LONG)


@inner
def long_overlap(shared, size_a, size_b):
    """Return the similarity of two rows by their long grams, 0 to 1; 1 if they are not compared by these."""
    smaller = min(size_a, size_b)
    if not are_long(size_a, size_b):
        return 1.0
    share = shared / smaller
    contained = _CONTAINED if smaller >= LONG else _SHORT_CONTAINED
    if shared / (size_a + size_b - shared) < _LEAST_JACCARD and share < contained:
        return 0.0
    return share**_POWER


@inner
def least_shared_long(threshold, size_a, size_b):
    """Return how many long grams two rows must share for `long_overlap` to reach the threshold."""
    if not are_long(size_a, size_b):
        return 0
    return math.ceil(threshold ** (1 / _POWER) * min(size_a, size_b) - _ROUNDING)
