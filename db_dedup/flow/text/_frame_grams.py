"""The grams that frames are made of, and the parts of texts that a set of grams covers.

A text is read as units. A unit is a character of a script without spaces, a run of letters of a script with
spaces, a run of digits (whichever digits they are, since the numbers in a form vary), or a sign. White space
is no unit. A gram is the shortest run of units that ends with a given unit and weighs enough: five
characters, or four words. A sign weighs half a character, so that a short label in brackets is a gram.

Sizes of stretches are in characters; a word counts as two, as most Chinese words have two.
"""

import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._code_points import KindTable, code_points
from db_dedup.flow.text._frame_kernels import (
    CHARACTER,
    DIGIT,
    GAP,
    LETTER,
    ROW_END,
    SIGN,
    SPACE,
    find_covered,
    list_grams,
    table_of,
)
from db_dedup.records.frames import CUT

# Scripts whose words are not separated by spaces: Thai, Lao, Tibetan, Burmese, Khmer, kana, ideographs, Yi.
_WITHOUT_SPACES: Final = (
    (0x0E00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x2FFF),
    (0x3005, 0x3007),
    (0x3021, 0x312F),
    (0x31A0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA000, 0xA4CF),
    (0xF900, 0xFAFF),
    (0x1B000, 0x1B2FF),
    (0x20000, 0x3FFFF),
)


class Covered(NamedTuple):
    """What a set of grams covers of r texts, in the c stretches of those that carry a frame.

    Attributes:
        rows: int64[c], ascending.
        starts: int64[c], in the joined texts.
        ends: int64[c].
        sizes: int64[r], the size of each text.
        own: int64[r], the size of the stretches that are not covered, of those that are long enough.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.int64]
    own: NDArray[np.int64]


def row_grams(texts: Sequence[str]) -> list[NDArray[np.uint64]]:
    """Return for each text uint64[m]: its distinct grams, ascending.

    Args:
        texts: normalised, so none holds a newline.
    """
    points, kinds = _points_of("\n".join(texts))
    grams = np.empty(points.size, np.uint64)
    ends = np.zeros(len(texts), np.int64)
    list_grams(points, kinds, ends, grams)
    starts = [0, *ends.tolist()[:-1]]
    return [np.unique(grams[start:end]) for start, end in zip(starts, ends.tolist(), strict=True)]


def covered_by(texts: Sequence[str], joined: str, grams: NDArray[np.uint64]) -> Covered:
    """Return the stretches of texts that these grams cover.

    Args:
        texts: normalised, so none holds a newline.
        joined: the texts, joined by newlines.
        grams: uint64[g], ascending, at least one.
    """
    points, kinds = _points_of(joined)
    sizes, own = np.zeros((2, len(texts)), np.int64)
    # A stretch has four units or more, and a unit or the end of the row comes before the next one.
    stretches = np.empty((points.size // 5 + 1, 4), np.int64)
    used = find_covered(points, kinds, table_of(grams), sizes, own, stretches)
    rows, starts, ends = stretches[:used, :3].T
    return Covered(rows, starts, ends, sizes, own)


def _points_of(joined: str) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return (the code points and a last newline, uint8[0x110000] the kinds of at least these points)."""
    points = code_points(f"{joined}\n")
    return points, _KINDS.of(points)


def _kind(character: str) -> int:
    if character == "\n":
        return ROW_END
    if character == CUT:
        return GAP
    category = unicodedata.category(character)
    if character.isspace():
        return SPACE
    if category == "Nd":
        return DIGIT
    if category[0] not in "LMN":
        return SIGN
    point = ord(character)
    return CHARACTER if any(low <= point <= high for low, high in _WITHOUT_SPACES) else LETTER


_KINDS: Final = KindTable(_kind)
