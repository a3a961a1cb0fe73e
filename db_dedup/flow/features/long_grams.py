"""Long grams: runs of five characters of texts that are mostly in letters.

A language that is written with some thirty letters uses nearly all of its common 3-grams in any text of a
few thousand characters, so two long texts share most of them whatever they are about. They share few runs of
five. A Chinese character, a Japanese one or a Korean syllable says as much as two or three letters, so
3-grams are long enough for these scripts (docs/decisions/0049-long-grams.md).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._arrays import sort_part, starts_of
from db_dedup.flow._code_points import KindTable, code_points
from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._mix import mix
from db_dedup.flow._new_arrays import empty, zeros
from db_dedup.records.frames import CUT

LONG_RUN: Final = 5
"""Characters of a long gram."""
LEAST_GRAMS: Final = 20
"""A row with fewer distinct long grams carries none: one edit would change too many of them."""

_NEWLINE: Final = 10
_BITS: Final = 21
_SPACE, _SIGN, _OTHER, _LETTER, _GAP = range(5)
"""The kinds of code points; `_OTHER` is a digit, or a character that says more than a letter."""

_DENSE: Final = (
    (0x2E80, 0xA4D0),  # radicals, kana, bopomofo, ideographs, Yi
    (0xAC00, 0xD7A4),  # Hangul syllables
    (0xF900, 0xFB00),  # compatibility ideographs
    (0x16FE0, 0x1B300),  # Tangut, Khitan, more kana
    (0x20000, 0x40000),  # more ideographs
)
"""First code points, and those past the last, of scripts of which a character says more than a letter."""


def find_long_grams(columns: Sequence[Sequence[str]]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the long grams of rows, of all their columns together.

    White space is left out, and so are grams without a letter or digit. No gram reaches from one column into
    the next, or across a `CUT`, where a frame was cut out.

    Args:
        columns: column by column the normalised texts of n rows, so none holds a newline; at least one.

    Returns:
        (int64[n + 1] the rows' slices, uint64[m] hashes, ascending and distinct within a row). A row has none
        unless more than half of its letters, digits and ideographs are letters, and it has at least
        `LEAST_GRAMS` distinct ones.
    """
    count = len(columns[0])
    rows = list(zip(*columns, strict=True))
    lengths = np.array([sum(map(len, row)) for row in rows], np.int64)
    chosen = _mostly_letters(rows, np.flatnonzero(lengths >= LEAST_GRAMS))
    if not chosen.size:
        return np.zeros(count + 1, np.int64), np.empty(0, np.uint64)
    points = _points_of([rows[row] for row in chosen.tolist()])
    sizes = np.zeros(count, np.int64)
    own_sizes, values = _hash_rows(points, _KINDS.of(points), len(columns), chosen.size)
    sizes[chosen] = own_sizes
    return starts_of(sizes), values


def _mostly_letters(rows: Sequence[tuple[str, ...]], some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of some rows of whose letters, digits and ideographs more than half are letters."""
    if not some.size:
        return some
    chosen = [rows[row] for row in some.tolist()]
    points = _points_of(chosen)
    kinds = _KINDS.of(points)[points]
    sizes = np.array([sum(map(len, row)) + len(row) for row in chosen], np.int64)
    firsts = np.cumsum(sizes) - sizes
    letters, others = (np.add.reduceat(kinds == kind, firsts, dtype=np.int64) for kind in (_LETTER, _OTHER))
    return some[(letters >= LEAST_GRAMS) & (letters > others)]


def _points_of(rows: Sequence[tuple[str, ...]]) -> NDArray[np.uint32]:
    """Return the code points of the rows, with a newline after each column of each row."""
    return code_points("".join(f"{text}\n" for row in rows for text in row))


def _kind(character: str) -> int:
    if character == CUT:
        return _GAP
    if character.isspace():
        return _SPACE
    if not character.isalnum():
        return _SIGN
    is_dense = any(first <= ord(character) < last for first, last in _DENSE)
    return _LETTER if character.isalpha() and not is_dense else _OTHER


_KINDS: Final = KindTable(_kind)


@kernel
def _hash_rows(points, kinds, columns, row_count):
    """Return (int64[row_count] numbers of long grams, their hashes row by row)."""
    low_mask = (np.uint64(1) << np.uint64(3 * _BITS)) - np.uint64(1)
    high_mask = (np.uint64(1) << np.uint64((LONG_RUN - 3) * _BITS)) - np.uint64(1)
    sizes = zeros(row_count, np.int64)
    values = empty(points.size, np.uint64)
    # The latest three characters, and those before them.
    low, high = np.uint64(0), np.uint64(0)
    length, signs = 0, LONG_RUN
    first, used, row, ended = 0, 0, 0, 0
    for i in range(points.size):
        if points[i] == _NEWLINE:
            length, signs = 0, LONG_RUN
            ended += 1
            if ended == columns:
                sizes[row] = _keep_distinct(values, first, used)
                first += sizes[row]
                used = first
                row += 1
                ended = 0
            continue
        kind = kinds[points[i]]
        if kind == _SPACE:
            continue
        if kind == _GAP:
            length, signs = 0, LONG_RUN
            continue
        high = ((high << np.uint64(_BITS)) | (low >> np.uint64(2 * _BITS))) & high_mask
        low = ((low << np.uint64(_BITS)) | np.uint64(points[i])) & low_mask
        length += 1
        signs = signs + 1 if kind == _SIGN else 0
        if length >= LONG_RUN and signs < LONG_RUN:
            values[used] = mix(mix(high) ^ low)
            used += 1
    return sizes, values[:used].copy()


@inner
def _keep_distinct(values, first, end):
    """Sort values[first:end] and move the distinct ones to the front; return their number, 0 if few."""
    sort_part(values, first, end)
    used = first
    for i in range(first, end):
        if i == first or values[i] != values[used - 1]:
            values[used] = values[i]
            used += 1
    return used - first if used - first >= LEAST_GRAMS else 0
