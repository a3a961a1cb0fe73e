"""The sets of the rows' features as they are stored beside the segments, in pieces of consecutive ids.

A candidate that shares enough hashes is ruled out by the set of its features (`flow.compare.feature_sets`).
Each set is stored beside its row, too; in pieces the sets of a whole table are read by a few statements and
kept in memory. A piece has the length of each of its sets in two bytes, 0 for a row that has none, and then
all sets.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import Part

ROWS_A_PIECE: Final = 512
"""The sets of so many rows take some 40 KB."""

_ID_BITS: Final = ROWS_A_PIECE.bit_length() - 1
_FIRST: Final = -(1 << 30) - 1
"""The number of the first piece: below the numbers of the pieces that have sizes."""
_LENGTH: Final = np.dtype("<u2")
_MOST_BYTES: Final = 0xFFFF


def set_pieces_of(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the numbers of the pieces that have the sets of these rows."""
    return _FIRST - (ids >> _ID_BITS)


def numbers_of(pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: which one each piece is, 0 for the one of the least ids."""
    return _FIRST - pieces


def ids_of_pieces(pieces: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last id that is in one of the pieces from the first to the last of these."""
    least, most = min(pieces), max(pieces)
    return (_FIRST - most) << _ID_BITS, ((_FIRST - least + 1) << _ID_BITS) - 1


def places_in_piece(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the position of each row in its piece."""
    return ids & (ROWS_A_PIECE - 1)


def pack_sets(ids: NDArray[np.int64], sets: Sequence[bytes | None]) -> Iterator[Part]:
    """Yield the pieces with the sets of some rows; one without any set is left out.

    Args:
        ids: int64[n], ascending, all that there are of each piece.
        sets: of these rows, None for a row that has none.
    """
    pieces = set_pieces_of(ids)
    bounds = np.flatnonzero(np.diff(pieces, prepend=1, append=1)).tolist()
    for first, last in itertools.pairwise(bounds):
        given = [each if each and len(each) <= _MOST_BYTES else b"" for each in sets[first:last]]
        lengths = np.zeros(ROWS_A_PIECE, _LENGTH)
        lengths[places_in_piece(ids[first:last])] = [*map(len, given)]
        if lengths.any():
            yield Part(int(pieces[first]), 0, b"".join([lengths.tobytes(), *given]))


def bounds_in(piece: bytes) -> tuple[NDArray[np.int64], bytes]:
    """Return (int64[ROWS_A_PIECE + 1] where the set of each row begins, and the last one ends; the sets).

    Of a piece that is not there, or is damaged, no row has a set.
    """
    head = ROWS_A_PIECE * _LENGTH.itemsize
    bounds = np.zeros(ROWS_A_PIECE + 1, np.int64)
    if len(piece) < head:
        return bounds, b""
    np.cumsum(np.frombuffer(piece, _LENGTH, ROWS_A_PIECE), out=bounds[1:])
    if bounds[-1] != len(piece) - head:
        return np.zeros(ROWS_A_PIECE + 1, np.int64), b""
    return bounds, piece[head:]
