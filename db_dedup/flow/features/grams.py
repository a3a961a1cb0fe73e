"""Character 3-grams as features of the similarity, hashed without a Python string for each.

They are the 3-grams of the segmenter `chars:3`: white space is left out, a shorter text is one gram, and
grams without a letter, digit or ideograph are dropped. Where a frame was cut out of a text (`CUT`), no gram
reaches across, and a part of fewer than three characters has no gram. Three code points of 21 bits, each
increased by one, are packed into one number, which a bijective function spreads over 64 bits. So equal hashes
are equal 3-grams, without exception.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._code_points import KindTable, code_points
from db_dedup.flow._compiled import kernel
from db_dedup.flow._mix import mix
from db_dedup.records.frames import CUT

# No 3-gram has one of these hashes: `mix` gives them only for 0 and for a number of more than 63 bits.
_DROPPED: Final = 0
_ROW_END: Final = 1
_NEWLINE: Final = 10
_RUN: Final = 3
_WINDOW: Final = 1 << 18
_BITS: Final = 21
_SIGN, _SPACE, ALPHANUMERIC, _GAP = range(4)


def hash_grams(texts: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes of all character 3-grams, row after row, with a mark at the end of each row.

    Args:
        texts: normalised, so none holds a newline.

    Returns:
        uint64[m] for `count_features`.
    """
    if not texts:
        return np.empty(0, np.uint64)
    joined = "\n".join(texts)
    stream = np.empty(len(joined) + 2 * len(texts), np.uint64)
    state = np.array([0, 0, _RUN, 0])
    used = 0
    for first in range(0, len(joined) + 1, _WINDOW):
        window = joined[first : first + _WINDOW]
        if len(window) < _WINDOW:
            window += "\n"
        points = code_points(window)
        used = _hash_grams(points, KINDS.of(points), stream, used, state)
    return stream[:used]


def _kind(character: str) -> int:
    if character == CUT:
        return _GAP
    if character.isalnum():
        return ALPHANUMERIC
    return _SPACE if character.isspace() else _SIGN


KINDS: Final = KindTable(_kind)


@kernel
def _hash_grams(points, kinds, stream, used, state):
    """Append the hashes of a window of the text to the stream; return the new length.

    The state passes from one window to the next: the latest 3-gram, the number of characters since the row
    began or since the last gap, how many of the last characters are signs, and whether the row has a gap.
    """
    mask = (np.uint64(1) << np.uint64(_RUN * _BITS)) - np.uint64(1)
    run, length, signs, has_gap = np.uint64(state[0]), state[1], state[2], state[3]
    for i in range(points.size):
        if points[i] == _NEWLINE:
            if 0 < length < _RUN and not has_gap:
                stream[used] = mix(run) if signs < length else np.uint64(_DROPPED)
                used += 1
            stream[used] = np.uint64(_ROW_END)
            used += 1
            run, length, signs, has_gap = np.uint64(0), 0, _RUN, 0
            continue
        kind = kinds[points[i]]
        if kind == _SPACE:
            continue
        if kind == _GAP:
            stream[used] = np.uint64(_DROPPED)
            used += 1
            run, length, signs, has_gap = np.uint64(0), 0, _RUN, 1
            continue
        # Plus one, so that two characters never equal three characters of which the first is NUL.
        run = ((run << np.uint64(_BITS)) | (np.uint64(points[i]) + np.uint64(1))) & mask
        length += 1
        signs = 0 if kind == ALPHANUMERIC else signs + 1
        if length >= _RUN:
            stream[used] = mix(run) if signs < _RUN else np.uint64(_DROPPED)
            used += 1
    state[0], state[1], state[2], state[3] = run, length, signs, has_gap
    return used
