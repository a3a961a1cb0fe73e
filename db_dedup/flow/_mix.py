"""A mix of 64 bits that several kernels share."""

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def mix(value):  # type: ignore[no-untyped-def]
    """A bijection of 64 bits in which each bit of the result depends on all (splitmix64's last step)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
