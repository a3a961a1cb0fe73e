"""MinHash (Broder 1997) in bands: finds texts with edits in many places.

72 hash functions give the set of features of a row 72 minima; three minima together make one of 24 bands. The
share of equal minima estimates the Jaccard similarity J of two sets. Two rows share at least one band with
probability 1 - (1 - J**3)**24: 0.48 at 0.3, 0.96 at 0.5.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty, zeros

BANDS: Final = 24
MINIMA_A_BAND: Final = 3

_SEED: Final = 0x9E3779B97F4A7C15


def find_bands(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return uint64[n, 24]: the bands of each row; meaningless for a row without features.

    Args:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], distinct within a row.
    """
    bands: NDArray[np.uint64] = _find_bands(starts, hashes, *hash_functions(BANDS * MINIMA_A_BAND))
    return bands


def find_minima(starts: NDArray[np.int64], hashes: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Return uint64[n, count]: of each row the least value of each of `count` hash functions.

    Args:
        starts: int64[n + 1], the rows' slices of hashes. A row without any has the largest number everywhere.
        hashes: uint64[m].
        count: how many hash functions.
    """
    minima: NDArray[np.uint64] = _find_minima(starts, hashes, *hash_functions(count))
    return minima


@lru_cache(maxsize=8)
def hash_functions(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return (multipliers, offsets), uint64[count]; function i is hash * multipliers[i] + offsets[i].

    All multipliers are odd, so that different hashes stay different.
    """
    offsets = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_SEED)
    return np.array([_odd(n) for n in offsets.tolist()], np.uint64), offsets


def _odd(value: int) -> int:
    return int(mix(np.uint64(value))) | 1


@inner
def _take_minima(hashes, begin, end, multipliers, offsets, minima):
    """Write the least value of each hash function over hashes[begin:end]."""
    minima[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
    for place in range(begin, end):
        value = hashes[place]
        for i in range(multipliers.size):
            hashed = value * multipliers[i] + offsets[i]
            minima[i] = min(minima[i], hashed)


@kernel
def _find_minima(starts, hashes, multipliers, offsets):
    minima = empty((starts.size - 1, multipliers.size), np.uint64)
    for row in range(starts.size - 1):
        _take_minima(hashes, starts[row], starts[row + 1], multipliers, offsets, minima[row])
    return minima


@kernel
def _find_bands(starts, hashes, multipliers, offsets):
    count = starts.size - 1
    bands = zeros((count, BANDS), np.uint64)
    minima = empty(multipliers.size, np.uint64)
    for row in range(count):
        _take_minima(hashes, starts[row], starts[row + 1], multipliers, offsets, minima)
        for band in range(BANDS):
            value = np.uint64(band + 1)
            for i in range(band * MINIMA_A_BAND, (band + 1) * MINIMA_A_BAND):
                value = mix(value ^ minima[i])
            bands[row, band] = value
    return bands
