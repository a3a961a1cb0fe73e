"""How many hashes the rows of the segments have: one byte a row, in pieces beside those of the segments.

Two rows are a candidate pair if they share enough hashes, and how many that is depends on the smaller of the
two sketches. With the sizes at hand, rows that share no more than a set phrase are ruled out before they are
looked up. A size is that of the sketch whose hashes are in the segments. That of a row that has changed since
is read from its own row.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import Part

UNKNOWN_SIZE: Final = 0
"""The size of a row whose size is not stored, or that has no hashes in the segments."""

ID_BITS: Final = 12
_ROWS_A_PIECE: Final = 1 << ID_BITS
_MOST_SLOTS: Final = 1 << 20
"""Enough for ids up to four billion. A table of the places of larger ids would take too much memory."""
MOST_SIZE: Final = 255
"""Larger sizes are stored as this one. Then fewer common hashes are asked for, so no candidate is lost."""


class SizeTable(NamedTuple):
    """The sizes of some pieces in one array.

    Attributes:
        sizes: uint8[4096 p], piece after piece.
        slots: int64[s], where in this order the sizes of the rows 4096 i and following are; -1: nowhere.
    """

    sizes: NDArray[np.uint8]
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Mapping[int, bytes]) -> Self:
        """Join pieces, given by their numbers; those that are not there, or are damaged, are left out."""
        usable = {-1 - number: each for number, each in pieces.items() if len(each) == _ROWS_A_PIECE}
        usable = {place: each for place, each in usable.items() if 0 <= place < _MOST_SLOTS}
        slots = np.full(max(usable, default=-1) + 1, -1, np.int64)
        slots[list(usable)] = np.arange(len(usable))
        return cls(np.frombuffer(b"".join(usable.values()), np.uint8), slots)


def size_pieces_of(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the numbers of the pieces that have the sizes of these rows; all are negative."""
    return -1 - (ids >> ID_BITS)


def pack_sizes(ids: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[Part]:
    """Yield the pieces with the sizes of some rows.

    Args:
        ids: int64[n], distinct.
        sizes: int64[n], how many hashes each row has.
    """
    order = np.argsort(ids)
    ids, sizes = ids[order], np.minimum(sizes[order], MOST_SIZE)
    pieces = size_pieces_of(ids)
    bounds = np.flatnonzero(np.diff(pieces, prepend=1, append=1)).tolist()
    for first, last in itertools.pairwise(bounds):
        packed = np.full(_ROWS_A_PIECE, UNKNOWN_SIZE, np.uint8)
        packed[ids[first:last] & (_ROWS_A_PIECE - 1)] = sizes[first:last]
        yield Part(int(pieces[first]), 0, packed.tobytes())


def sizes_in(pieces: Mapping[int, bytes], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[n]: the sizes of some rows.

    Args:
        pieces: number -> piece.
        ids: int64[n], ascending. The size of a row whose piece is not there, or is damaged, is not known.
    """
    of_rows = size_pieces_of(ids)
    firsts = np.flatnonzero(np.diff(of_rows, prepend=1))
    unknown = bytes(_ROWS_A_PIECE)
    found = [pieces.get(piece, unknown) for piece in of_rows[firsts].tolist()]
    packed = b"".join(each if len(each) == _ROWS_A_PIECE else unknown for each in found)
    starts = np.repeat(np.arange(firsts.size) << ID_BITS, np.diff(firsts, append=ids.size))
    sizes: NDArray[np.uint8] = np.frombuffer(packed, np.uint8)[starts + (ids & (_ROWS_A_PIECE - 1))]
    return sizes.astype(np.int64)
