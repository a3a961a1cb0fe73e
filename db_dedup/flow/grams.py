"""Runs of three characters as features of the similarity, hashed without a string for each.

The same runs that the segmenter `chars:3` cuts (white space left out, a shorter text is one run, runs without
a letter, digit or ideograph dropped), but packed: three code points of 21 bits fit one number, which a
bijective mix spreads over 64 bits. So equal hashes are equal runs, without exception.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._mix import mix

_DROPPED: Final = 0
_ROW_END: Final = 1
_NEWLINE: Final = 10
_BITS: Final = 21
_CODE_POINTS: Final = 0x110000


def hash_grams(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Hashes of all runs of three characters, row after row, each row followed by a row's end.

    Args:
        texts: normalised, so none holds a newline.

    Returns:
        uint64[m] for `count_features`.
    """
    if not texts:
        return np.empty(0, np.uint64)
    encoded = "\n".join(texts).encode("utf-32-le", "surrogatepass")
    stream: NDArray[np.uint64] = _hash_grams(np.frombuffer(encoded, np.uint32), len(texts), _kinds())
    return stream


@cache
def _kinds() -> NDArray[np.uint8]:
    """For each code point: 2 where it says something, 1 where it is white space, else 0."""
    kinds = np.zeros(_CODE_POINTS, np.uint8)
    for point in range(_CODE_POINTS):
        character = chr(point)
        kinds[point] = 2 if character.isalnum() else int(character.isspace())
    return kinds


@nb.njit(cache=True, nogil=True)
def _hash_grams(points, rows, kinds):  # type: ignore[no-untyped-def]
    mask = (np.uint64(1) << np.uint64(3 * _BITS)) - np.uint64(1)
    stream = np.empty(points.size + 2 * rows, np.uint64)
    used = 0
    run, length, quiet = np.uint64(0), 0, 3
    for i in range(points.size + 1):
        if i == points.size or points[i] == _NEWLINE:
            if 0 < length < 3:
                stream[used] = _named(run) if quiet < length else np.uint64(_DROPPED)
                used += 1
            stream[used] = np.uint64(_ROW_END)
            used += 1
            run, length, quiet = np.uint64(0), 0, 3
            continue
        kind = kinds[points[i]]
        if kind == 1:
            continue
        run = ((run << np.uint64(_BITS)) | np.uint64(points[i])) & mask
        length += 1
        # How many of the latest characters say nothing.
        quiet = 0 if kind == 2 else quiet + 1
        if length >= 3:
            stream[used] = _named(run) if quiet < 3 else np.uint64(_DROPPED)
            used += 1
    return stream[:used].copy()


@nb.njit(cache=True, nogil=True)
def _named(run):  # type: ignore[no-untyped-def]
    """The hash of a run; two values are taken by what is dropped and by the end of a row."""
    value = mix(run + np.uint64(1))
    return value if value > np.uint64(_ROW_END) else value + np.uint64(2)
