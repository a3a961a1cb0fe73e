"""SimHash with 64 and 32 bits, and the vectors of sums before the sign."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import kernel
from db_dedup.flow._new_arrays import zeros
from db_dedup.flow.features.counting import Features
from db_dedup.flow.fingerprints.simhash import FINGERPRINT_BITS, fingerprint_rows

_LOW_BITS: Final = np.uint64(0xFFFFFFFF)


def simhash64(features: Features) -> NDArray[np.uint64]:
    """Return uint64[n], the SimHash of each row (P1): the fingerprint of the product. 0 for a row without
    features.

    Time: 64 additions for each feature.
    """
    return fingerprint_rows(features.starts, features.hashes, features.weights)


def simhash32(features: Features) -> NDArray[np.uint64]:
    """Return uint64[n], the SimHash of 32 bits of each row (P5), by the lowest 32 bits of each hash.

    Time: as `simhash64`.
    """
    return simhash64(features) & _LOW_BITS


def simhash_vectors(features: Features) -> NDArray[np.int64]:
    """Return int64[n, 64]: for each bit the weights of the features that have it, less those of the others
    (P4).

    Bit b of `simhash64` is 1 where column b is above zero. 512 bytes a row; time: as `simhash64`.
    """
    result: NDArray[np.int64] = _sums(features.starts, features.hashes, features.weights)
    return result


@kernel
def _sums(starts, hashes, weights):
    sums = zeros((starts.size - 1, FINGERPRINT_BITS), np.int64)
    for row in range(starts.size - 1):
        for i in range(starts[row], starts[row + 1]):
            for bit in range(FINGERPRINT_BITS):
                is_set = (hashes[i] >> np.uint64(bit)) & np.uint64(1)
                sums[row, bit] += weights[i] if is_set else -weights[i]
    return sums
