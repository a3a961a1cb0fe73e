"""Runs of three characters as features of the similarity, hashed without a string for each.

The same runs that the segmenter `chars:3` cuts (white space left out, a shorter text is one run, runs without
a letter, digit or ideograph dropped), but packed: three code points of 21 bits, each one more than it is, fit
one number, which a bijective mix spreads over 64 bits. So equal hashes are equal runs, without exception.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._mix import mix

# No run is mixed to either: of the two numbers that are, one is 0 and the other is longer than a run.
_DROPPED: Final = 0
_ROW_END: Final = 1
_NEWLINE: Final = 10
_RUN: Final = 3
_WINDOW: Final = 1 << 18
_BITS: Final = 21
_CODE_POINTS: Final = 0x110000
_SILENT, _SPACE, _SAYS_SOMETHING, _UNKNOWN = range(4)


def hash_grams(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Hashes of all runs of three characters, row after row, each row followed by a row's end.

    Args:
        texts: normalised, so none holds a newline.

    Returns:
        uint64[m] for `count_features`.
    """
    if not texts:
        return np.empty(0, np.uint64)
    joined = "\n".join(texts)
    stream = np.empty(len(joined) + 2 * len(texts), np.uint64)
    state = np.array([0, 0, _RUN])
    used = 0
    for first in range(0, len(joined) + 1, _WINDOW):
        window = joined[first : first + _WINDOW]
        if len(window) < _WINDOW:
            window += "\n"
        points = np.frombuffer(window.encode("utf-32-le", "surrogatepass"), np.uint32)
        used = _hash_grams(points, _kinds_of(points), stream, used, state)
    return stream[:used]


def _kinds_of(points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """uint8[0x110000]: what kind of character each code point is, known for these at least."""
    kinds = _known_kinds()
    new = np.unique(points[kinds[points] == _UNKNOWN])
    kinds[new] = [_kind(chr(point)) for point in new.tolist()]
    return kinds


@cache
def _known_kinds() -> NDArray[np.uint8]:
    # To ask for all of them beforehand would cost a single look-up more than all the rest of it.
    return np.full(_CODE_POINTS, _UNKNOWN, np.uint8)


def _kind(character: str) -> int:
    if character.isalnum():
        return _SAYS_SOMETHING
    return _SPACE if character.isspace() else _SILENT


@nb.njit(cache=True, nogil=True)
def _hash_grams(points, kinds, stream, used, state):  # type: ignore[no-untyped-def]
    """Put the hashes of a window of the text behind those that are there; how many there are by then.

    The state goes from one window to the next: the latest run, its length in the row, and how many of its
    last characters say nothing.
    """
    mask = (np.uint64(1) << np.uint64(_RUN * _BITS)) - np.uint64(1)
    run, length, quiet = np.uint64(state[0]), state[1], state[2]
    for i in range(points.size):
        if points[i] == _NEWLINE:
            if 0 < length < _RUN:
                stream[used] = mix(run) if quiet < length else np.uint64(_DROPPED)
                used += 1
            stream[used] = np.uint64(_ROW_END)
            used += 1
            run, length, quiet = np.uint64(0), 0, _RUN
            continue
        kind = kinds[points[i]]
        if kind == _SPACE:
            continue
        # One more than it is, so that a run of two is no run of three that begins with a zero character.
        run = ((run << np.uint64(_BITS)) | (np.uint64(points[i]) + np.uint64(1))) & mask
        length += 1
        quiet = 0 if kind == _SAYS_SOMETHING else quiet + 1
        if length >= _RUN:
            stream[used] = mix(run) if quiet < _RUN else np.uint64(_DROPPED)
            used += 1
    state[0], state[1], state[2] = run, length, quiet
    return used
