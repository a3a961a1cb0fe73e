"""Step 4: features -> 64-bit SimHash (Charikar 2002; the weighted form of P1).

Each feature adds its weight to every bit that is 1 in its hash, and subtracts it from every other bit. The
sums are exact integers, so that every engine computes equal bits.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import kernel
from db_dedup.flow._new_arrays import empty, zeros

FINGERPRINT_BITS: Final = 64


def fingerprint_rows(
    starts: NDArray[np.int64], hashes: NDArray[np.uint64], weights: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the SimHash of each row.

    Args:
        starts: int64[n + 1], the rows' slices of the two others.
        hashes: uint64[m], one for each feature.
        weights: int64[m].

    Returns:
        uint64[n]; a bit is 1 if its sum is above zero. A row without features has 0 here, which the caller
        replaces by NULL.
    """
    result: NDArray[np.uint64] = _simhash(starts, hashes, weights)
    return result


@kernel
def _simhash(starts, hashes, weights):
    fingerprints = zeros(starts.size - 1, np.uint64)
    sums = empty(FINGERPRINT_BITS, np.int64)
    for row in range(fingerprints.size):
        sums[:] = 0
        total = 0
        for i in range(starts[row], starts[row + 1]):
            value, weight = hashes[i], weights[i]
            total += weight
            for bit in range(FINGERPRINT_BITS):
                sums[bit] += weight * np.int64((value >> np.uint64(bit)) & np.uint64(1))
        fingerprint = np.uint64(0)
        for bit in range(FINGERPRINT_BITS):
            # for - against > 0, where against = total - for
            if 2 * sums[bit] > total:
                fingerprint |= np.uint64(1) << np.uint64(bit)
        fingerprints[row] = fingerprint
    return fingerprints
