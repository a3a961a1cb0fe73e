"""MinHash (Broder 1997) in bands: finds texts with edits in many places.

72 hash functions give the set of features of a row 72 minima; three minima together make one of 24 bands. The
share of equal minima estimates the Jaccard similarity J of two sets. Two rows share at least one band with
probability 1 - (1 - J**3)**24: 0.48 at 0.3, 0.96 at 0.5.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import kernel
from db_dedup.flow._mix import mix
from db_dedup.flow.candidates._bands import BANDS

MINIMA_A_BAND: Final = 3

_SEED: Final = 0x9E3779B97F4A7C15


def find_bands(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return uint64[n, 24]: the bands of each row; meaningless for a row without features.

    Args:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], distinct within a row.
    """
    numbers = np.arange(1, BANDS * MINIMA_A_BAND + 1, dtype=np.uint64) * np.uint64(_SEED)
    multipliers = np.array([_odd(n) for n in numbers.tolist()], np.uint64)
    bands: NDArray[np.uint64] = _find_bands(starts, hashes, multipliers, numbers)
    return bands


def _odd(value: int) -> int:
    return int(mix(np.uint64(value))) | 1


@kernel
def _find_bands(starts, hashes, multipliers, offsets):
    count = starts.size - 1
    bands = np.zeros((count, BANDS), np.uint64)
    minima = np.empty(multipliers.size, np.uint64)
    for row in range(count):
        minima[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
        for place in range(starts[row], starts[row + 1]):
            value = hashes[place]
            for i in range(multipliers.size):
                hashed = value * multipliers[i] + offsets[i]
                minima[i] = min(minima[i], hashed)
        for band in range(BANDS):
            value = np.uint64(band + 1)
            for i in range(band * MINIMA_A_BAND, (band + 1) * MINIMA_A_BAND):
                value = mix(value ^ minima[i])
            bands[row, band] = value
    return bands
