"""Single-pass clustering."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.flow._compiled import kernel
from db_dedup.flow._new_arrays import empty
from db_dedup.flow.candidates._bucket_join import popcount
from db_dedup.flow.fingerprints.simhash import FINGERPRINT_BITS


class Clusters(NamedTuple):
    """The clusters of n rows.

    Attributes:
        labels: int32[n], the cluster of each row, numbered from 0 in the order in which they began.
        comparisons: how many fingerprints were compared.
    """

    labels: NDArray[np.int32]
    comparisons: int


def single_pass(fingerprints: NDArray[np.uint64], radius: int) -> Clusters:
    """Put each row into the first cluster whose first row is within `radius` bits, or begin a new one (P1).

    The result depends on the order of the rows, unlike the groups of the product, which connect all similar
    rows. Time: one comparison a row if all are alike, n * (n - 1) / 2 in all if none are.

    Args:
        fingerprints: uint64[n], in the order of the rows.
        radius: bits, 0 to 64.

    Raises:
        InvalidArgumentError: another radius.
    """
    if not 0 <= radius <= FINGERPRINT_BITS:
        raise InvalidArgumentError("a radius is 0 to 64 bits, not {radius}", radius=radius)
    labels, comparisons = _single_pass(fingerprints, radius)
    return Clusters(labels, int(comparisons))


@kernel
def _single_pass(fingerprints, radius):
    labels = empty(fingerprints.size, np.int32)
    firsts = empty(fingerprints.size, np.uint64)
    clusters, comparisons = 0, 0
    for row in range(fingerprints.size):
        cluster = 0
        while cluster < clusters:
            comparisons += 1
            if popcount(firsts[cluster] ^ fingerprints[row]) <= np.uint64(radius):
                break
            cluster += 1
        if cluster == clusters:
            firsts[clusters] = fingerprints[row]
            clusters += 1
        labels[row] = cluster
    return labels, comparisons
