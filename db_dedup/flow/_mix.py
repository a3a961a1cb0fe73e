"""A bijective hash of 64-bit numbers that several kernels share."""

import numpy as np

from db_dedup.flow._compiled import kernel


@kernel
def mix(value):
    """Return a bijective hash of a 64-bit number: the last step of splitmix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
