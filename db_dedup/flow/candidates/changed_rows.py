"""Which rows have changed since the segments were written: a bit for each row, in pieces beside the segments.

A changed row has single entries of those hashes alone that the segments do not have for it. So it may be
found by the segments alone, where its size and its set of features are those of its former text. The bit
tells that they do not count.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates.segments import Part

_ID_BITS: Final = 16
_BYTES_A_PIECE: Final = (1 << _ID_BITS) // 8
_MANY_ROWS: Final = 10_000
_ROWS_AT_A_TIME: Final = 1_000_000
_FIRST: Final = -(1 << 31)
"""The number of the first piece: below those of the pieces that have sets, which grow towards it."""


def changed_pieces_of(ids: NDArray[np.integer[Any]]) -> list[int]:
    """Return the numbers of the pieces that have the bits of these rows; of many rows others, too."""
    if ids.size > _MANY_ROWS and int(ids.max()) >> _ID_BITS < _MANY_ROWS:  # to sort them would take long
        return list(range(_FIRST + (int(ids.min()) >> _ID_BITS), _FIRST + (int(ids.max()) >> _ID_BITS) + 1))
    numbers: list[int] = (_FIRST + np.unique(ids >> _ID_BITS).astype(np.int64)).tolist()
    return numbers


class ChangedRows:
    """The bits of some rows."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        """Take pieces by their numbers; no row of a piece that is not here, or is empty, has changed.

        Raises:
            ValueError: a piece is damaged.
        """
        stored = {number - _FIRST: each[:_BYTES_A_PIECE] for number, each in pieces.items() if each}
        if any(len(each) < _BYTES_A_PIECE for each in stored.values()):
            raise ValueError("a piece of the index is too short")
        self._places = np.array(sorted(stored), np.int64)
        self._bits = np.frombuffer(b"".join(stored[place] for place in self._places.tolist()), np.uint8)

    def are(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return bool[n]: which of n rows have changed."""
        have_changed = np.zeros(ids.size, np.bool_)
        for first in range(0, ids.size if self._places.size else 0, _ROWS_AT_A_TIME):
            some = slice(first, first + _ROWS_AT_A_TIME)
            have_changed[some] = self._are(ids[some])
        return have_changed

    def _are(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        of_rows = (ids >> _ID_BITS).astype(np.int64)
        slots = np.minimum(np.searchsorted(self._places, of_rows), self._places.size - 1)
        bits = (ids & ((1 << _ID_BITS) - 1)).astype(np.int64)
        found = self._bits[slots * _BYTES_A_PIECE + (bits >> 3)] >> (bits & 7).astype(np.uint8)
        have_changed: NDArray[np.bool_] = (self._places[slots] == of_rows) & (found & 1).astype(np.bool_)
        return have_changed

    def with_rows(self, ids: NDArray[np.int64]) -> Iterator[Part]:
        """Yield the pieces that have the bits of some more rows, with these."""
        for place in np.unique(ids >> _ID_BITS).tolist():
            slot = int(np.searchsorted(self._places, place))
            bits = np.zeros(_BYTES_A_PIECE, np.uint8)
            if slot < self._places.size and self._places[slot] == place:
                bits[:] = self._bits[slot * _BYTES_A_PIECE : (slot + 1) * _BYTES_A_PIECE]
            own = ids[ids >> _ID_BITS == place] & ((1 << _ID_BITS) - 1)
            np.bitwise_or.at(bits, own >> 3, np.uint8(1) << (own & 7).astype(np.uint8))
            yield Part(_FIRST + place, 0, bits.tobytes())
