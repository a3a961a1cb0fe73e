"""A set of row keys in little memory."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class KeyHashes:
    """A set of row keys that takes 8 bytes for each, and 16 while it grows.

    It keeps 64-bit hashes: of n keys that are not in a set of m keys, about n * m / 2**64 seem to be.
    """

    def __init__(self) -> None:
        """Begin with no key."""
        self._sorted: list[NDArray[np.int64]] = []
        """Each longer than the next one, so a key is moved only some dozen times."""

    def add(self, keys: Sequence[str]) -> None:
        """Add keys that are not in the set yet."""
        hashes = _hashes(keys)
        while self._sorted and self._sorted[-1].size <= hashes.size:
            hashes = np.concatenate([self._sorted.pop(), hashes])
        hashes.sort()
        self._sorted.append(hashes)

    def others(self, keys: Sequence[str]) -> list[str]:
        """Return those of some keys that are not in the set, in their order."""
        hashes = _hashes(keys)
        is_other = np.ones(hashes.size, np.bool_)
        for known in self._sorted:
            if known.size:
                is_other &= known[np.minimum(known.searchsorted(hashes), known.size - 1)] != hashes
        return [key for key, other in zip(keys, is_other.tolist(), strict=True) if other]


def _hashes(keys: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, keys), np.int64, len(keys))
