"""Why two fingerprints differ: divide each bit in which they differ among the columns that caused it."""

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.fingerprints.simhash import FINGERPRINT_BITS


def bit_sums(
    starts: NDArray[np.int64], hashes: NDArray[np.uint64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for each bit the sum of the weights for it minus the weights against it.

    Args:
        starts: int64[n + 1], the rows' slices of the two others.
        hashes: uint64[m], one for each feature.
        weights: int64[m].

    Returns:
        int64[n, 64]; bit i of the fingerprint, counted from the lowest, is 1 if the sum in column i is above
        zero. The sums of a row's columns add up to the sums of the row.
    """
    sums = np.empty((starts.size - 1, FINGERPRINT_BITS), np.int64)
    running = np.zeros(hashes.size + 1, np.int64)
    for bit in range(FINGERPRINT_BITS):  # one at a time: a long text has millions of features
        is_for = (hashes >> np.uint64(bit)) & np.uint64(1) == 1
        np.cumsum(np.where(is_for, weights, -weights), out=running[1:])
        sums[:, bit] = running[starts[1:]] - running[starts[:-1]]
    return sums


def share_differing_bits(sums_a: NDArray[np.int64], sums_b: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many of the bits in which two rows differ each column has caused.

    In such a bit the sums of the two rows have different signs. Say that b has the higher sum. The push of a
    column is the amount by which its own sum is higher in b than in a, and 0 if it is lower. The bit is
    divided in proportion to the pushes; at least one push is above 0, since the sums of the rows differ. If a
    has the higher sum, a and b are exchanged.

    Args:
        sums_a: int64[c, 64], the bit sums of each of one row's columns by itself.
        sums_b: int64[c, 64], the other row's.

    Returns:
        float64[c], none below 0; they add up to the Hamming distance of the two rows.
    """
    is_one_a, is_one_b = sums_a.sum(axis=0) > 0, sums_b.sum(axis=0) > 0
    differs = is_one_a != is_one_b
    direction = np.where(is_one_b[differs], 1, -1)
    pushes = np.maximum(0, (sums_b - sums_a)[:, differs] * direction)
    shares: NDArray[np.float64] = (pushes / pushes.sum(axis=0)).sum(axis=1)
    return shares
