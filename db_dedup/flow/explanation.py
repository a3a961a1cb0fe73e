"""Why two fingerprints differ: each bit in which they do, shared out among the columns that turned it."""

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.fingerprint import FINGERPRINT_BITS


def bit_sums(
    starts: NDArray[np.int64], hashes: NDArray[np.uint64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The weights for each bit less those against it, before only the sign is kept.

    Args:
        starts: int64[n + 1], the rows' slices of the two others.
        hashes: uint64[m], one for each feature.
        weights: int64[m].

    Returns:
        int64[n, 64]; the fingerprint has a 1 in bit i, counted from the lowest, where column i is above zero.
        The sums of a row's columns add up to those of the row.
    """
    sums = np.empty((starts.size - 1, FINGERPRINT_BITS), np.int64)
    running = np.zeros(hashes.size + 1, np.int64)
    for bit in range(FINGERPRINT_BITS):  # one at a time: a long text has millions of features
        is_for = (hashes >> np.uint64(bit)) & np.uint64(1) == 1
        np.cumsum(np.where(is_for, weights, -weights), out=running[1:])
        sums[:, bit] = running[starts[1:]] - running[starts[:-1]]
    return sums


def share_differing_bits(sums_a: NDArray[np.int64], sums_b: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many of the bits in which two rows differ are each column's doing.

    In such a bit the rows' sums lie on both sides of zero. Say that b's is the higher one: a column pushed by
    as much as its own sum is higher in b than in a, and by nothing where it is not, since it then held the
    bit back. The bit is shared out in proportion to these pushes; some column has pushed, as the rows' sums
    differ. Where a's sum is the higher one, the same with a and b exchanged.

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
