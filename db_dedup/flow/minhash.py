"""Step 5's second proposer: MinHash (Broder 1997) in bands.

Each row's set of features is sketched by the smallest of 96 hashes of its members, taken three at a time to
32 bands. The share of equal minima estimates the Jaccard similarity of two sets; two rows are candidates when
a whole band is equal, with probability 1 - (1 - J**3)**32 for a similarity J: 0.58 at 0.3, 0.99 at 0.5.
"""

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._mix import mix

BANDS: Final = 32
ROWS_A_BAND: Final = 3

SKETCH_BYTES: Final = 8 * BANDS

_SEED: Final = 0x9E3779B97F4A7C15


def sketch_rows(starts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """uint64[n, 32]: the bands of each row; meaningless for a row without features.

    Args:
        starts: int64[n + 1], the rows' slices of hashes.
        hashes: uint64[m], distinct within a row.
    """
    numbers = np.arange(1, BANDS * ROWS_A_BAND + 1, dtype=np.uint64) * np.uint64(_SEED)
    multipliers = np.array([_odd(n) for n in numbers.tolist()], np.uint64)
    sketches: NDArray[np.uint64] = _sketch_rows(starts, hashes, multipliers, numbers)
    return sketches


def runs_of_equal(values: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Rows that share a value, run by run.

    Args:
        values: uint64[n], one band of all rows.

    Returns:
        (int32[r] row numbers, int64[k + 1] where each of the k runs of two or more rows starts).
    """
    order = np.argsort(values, kind="stable").astype(np.int32)
    ordered = values[order]
    is_equal = ordered[1:] == ordered[:-1]
    in_run = np.zeros(order.size, np.bool_)
    in_run[1:] |= is_equal
    in_run[:-1] |= is_equal
    rows, kept = order[in_run], ordered[in_run]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, kept.size), np.bool_), kept[1:] != kept[:-1]]))
    return rows, np.concatenate([firsts, [rows.size]]).astype(np.int64)


def _odd(value: int) -> int:
    return int(mix(np.uint64(value))) | 1


@nb.njit(cache=True, nogil=True)
def share_a_band(sketches, a, b):  # type: ignore[no-untyped-def]
    """Whether two rows agree in some band; False where no bands are kept."""
    shared = False
    for band in range(sketches.shape[1]):
        shared |= sketches[a, band] == sketches[b, band]
    return shared


@nb.njit(cache=True, nogil=True)
def _sketch_rows(starts, hashes, multipliers, offsets):  # type: ignore[no-untyped-def]
    count = starts.size - 1
    sketches = np.zeros((count, BANDS), np.uint64)
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
            for i in range(band * ROWS_A_BAND, (band + 1) * ROWS_A_BAND):
                value = mix(value ^ minima[i])
            sketches[row, band] = value
    return sketches
