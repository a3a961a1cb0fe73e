"""Pairs that people have rejected, as the matching takes them: by the numbers of rows."""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.store.verdicts import DigestPair

_HALF_BITS: Final = 32

NONE_REJECTED: Final = np.empty(0, np.int64)


def rejected_rows(digests: NDArray[np.uint64], rejected: Collection[DigestPair]) -> NDArray[np.int64]:
    """int64[r], ascending: the rejected pairs of rows, each as one number.

    Args:
        digests: uint64[n, 2]; of rows with one digest the first stands for all.
        rejected: digests of two texts that are no duplicates.
    """
    if not rejected:
        return NONE_REJECTED
    first = _first_rows(digests, {digest for pair in rejected for digest in pair})
    found = [(first[a], first[b]) for a, b in rejected if a in first and b in first]
    return pack(np.array(found, np.int64).reshape(-1, 2))


def pack(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[r], ascending: pairs of numbers, int64[r, 2], the smaller one in the upper half."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    return np.sort((low << _HALF_BITS) | high)


def unpack(packed: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[r, 2], the smaller number first."""
    return np.stack([packed >> _HALF_BITS, packed & ((1 << _HALF_BITS) - 1)], axis=1)


def _first_rows(digests: NDArray[np.uint64], wanted: Collection[bytes]) -> dict[bytes, int]:
    """digest -> the first row that has it, for those that some row has."""
    halves = np.frombuffer(b"".join(wanted), np.uint64).reshape(-1, 2)
    near = np.flatnonzero(np.isin(digests[:, 0], halves[:, 0]))
    return {digest: row for digest, row in _reversed_digests(digests, near) if digest in wanted}


def _reversed_digests(digests: NDArray[np.uint64], rows: NDArray[np.intp]) -> Iterator[tuple[bytes, int]]:
    """(digest, row), the last row first: of equal ones the first is what a dict keeps."""
    for row in rows[::-1].tolist():
        yield digests[row].tobytes(), row
