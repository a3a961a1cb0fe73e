"""Pairs that people have labelled as no duplicates, as the matching takes them: by the numbers of rows."""

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.compare.rows import NONE_REJECTED
from db_dedup.records.fingerprints import DigestPair

_HALF_BITS: Final = 32


def rejected_rows(digests: NDArray[np.uint64], rejected: Collection[DigestPair]) -> NDArray[np.int64]:
    """Return int64[r], ascending: the rejected pairs of rows, each as one number.

    Args:
        digests: uint64[n, 2]; of rows with equal digests the first one is used.
        rejected: pairs of texts that people have labelled as no duplicates, by their digests.
    """
    if not rejected:
        return NONE_REJECTED
    first = _first_rows(digests, {digest for pair in rejected for digest in pair})
    found = [(first[a], first[b]) for a, b in rejected if a in first and b in first]
    return pack(np.array(found, np.int64).reshape(-1, 2))


def pack(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[r], ascending: each pair of int64[r, 2] as one number, the smaller in the upper half."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    return np.sort((low << _HALF_BITS) | high)


def unpack(packed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[r, 2]: the pairs of packed numbers, the smaller number first."""
    return np.stack([packed >> _HALF_BITS, packed & ((1 << _HALF_BITS) - 1)], axis=1)


def _first_rows(digests: NDArray[np.uint64], wanted: Collection[bytes]) -> dict[bytes, int]:
    """Return digest -> the first row that has it, without digests that no row has."""
    halves = np.frombuffer(b"".join(wanted), np.uint64).reshape(-1, 2)
    near = np.flatnonzero(np.isin(digests[:, 0], halves[:, 0]))
    return {digest: row for digest, row in _reversed_digests(digests, near) if digest in wanted}


def _reversed_digests(digests: NDArray[np.uint64], rows: NDArray[np.intp]) -> Iterator[tuple[bytes, int]]:
    """Yield (digest, row), the last row first, so that a dict of them keeps the first of equal rows."""
    for row in rows[::-1].tolist():
        yield digests[row].tobytes(), row
