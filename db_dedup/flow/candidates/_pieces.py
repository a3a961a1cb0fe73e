"""Two large buckets of `_bucket_join` searched by pieces of their other bits, if that compares less.

Rows of two buckets differ by a known number of bits in the block, and may differ by the rest of the radius in
the other 48 bits. These are cut into rest + 1 pieces, so two near rows agree in one piece at least. The rows
of both buckets are sorted by each piece in turn, and only those that agree in it are compared. Block and
piece are together a key of up to 28 bits at radius 3, as in permuted sorted tables (Manku, Jain, Das Sarma
2007); but the rows that are sorted are those of one bucket, which are in the processor's cache.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow._compiled import allocating, inner
from db_dedup.flow._new_arrays import empty

MOST_ROWS = 1 << 15
"""A bucket with more rows is divided by another block instead of being sorted by pieces."""
_BLOCK_BITS = 16
_OTHER_BITS = 48
_MOST_KEY_BITS = 16


class Pieces(NamedTuple):
    """How two buckets are searched.

    Attributes:
        number: of the pieces.
        width: bits of a piece.
        bits: how many of these are its key: about as many as the number of rows has.
        place: of the first piece in a fingerprint; the others follow, from bit 63 on at bit 0.
    """

    number: int
    width: int
    bits: int
    place: int


NO_PIECES = Pieces(0, 0, 0, 0)


class Room(NamedTuple):
    """Room for the rows of a bucket, sorted by a piece.

    Attributes:
        values: their fingerprints.
        rows: their numbers.
        starts: where the rows of each key start, and where the last ones end.
    """

    values: NDArray[np.uint64]
    rows: NDArray[np.int32]
    starts: NDArray[np.int64]


@allocating
def make_room(rows):
    """Return room for buckets of so many rows."""
    keys = min(2 * max(rows, 1), 1 << _MOST_KEY_BITS)
    return Room(empty(rows, np.uint64), empty(rows, np.int32), empty(keys + 2, np.int64))


@inner
def choose_pieces(shift, rest, rows):
    """Return the pieces for two buckets of the block at `shift`, the larger of which has so many rows."""
    bits = 1
    while rows >> (bits + 1):
        bits += 1
    width = _OTHER_BITS // (rest + 1)
    return Pieces(rest + 1, width, min(width, bits), (shift + _BLOCK_BITS) & 63)


@inner
def _key(value, piece, pieces):
    """Return the key of a fingerprint by one of the pieces."""
    place = np.uint64((pieces.place + piece * pieces.width) & 63)
    # Shifted twice: a shift by 64 bits is not defined.
    turned = (value >> place) | ((value << np.uint64(1)) << (np.uint64(63) - place))
    return np.int64(turned & ((np.uint64(1) << np.uint64(pieces.bits)) - np.uint64(1)))


@inner
def key_mask(piece, pieces):
    """Return the bits of a fingerprint that are the key of a piece."""
    place = np.uint64((pieces.place + piece * pieces.width) & 63)
    low = (np.uint64(1) << np.uint64(pieces.bits)) - np.uint64(1)
    return (low << place) | ((low >> np.uint64(1)) >> (np.uint64(63) - place))


@inner
def _count_keys(values, start, end, piece, pieces, starts):
    """Count the rows of each key, in starts[key + 2]."""
    for i in range((1 << pieces.bits) + 2):
        starts[i] = 0
    for i in range(start, end):
        starts[_key(values[i], piece, pieces) + 2] += 1


@inner
def sort_by_piece(values, rows, start, end, piece, pieces, room):
    """Sort the rows of a bucket by the key of a piece."""
    starts = room.starts
    _count_keys(values, start, end, piece, pieces, starts)
    for i in range(2, (1 << pieces.bits) + 2):
        starts[i] += starts[i - 1]
    for i in range(start, end):
        # starts[key + 1] begins as the start of the key, and ends as that of the next one.
        key = _key(values[i], piece, pieces)
        place = starts[key + 1]
        starts[key + 1] = place + 1
        room.values[place] = values[i]
        room.rows[place] = rows[i]


@inner
def comparisons(size_a, size_b, is_same):
    """Return how often rows are compared, if each is compared with each."""
    return size_a * (size_a - 1) // 2 if is_same else size_a * size_b


@inner
def _sorting_cost(size_a, size_b, is_same, pieces, sorting):
    """Return what sorting takes, in comparisons."""
    rows = size_a if is_same else size_a + size_b
    return pieces.number * (sorting * rows + (1 << pieces.bits))


@inner
def can_win(size_a, size_b, is_same, pieces, sorting):
    """Return whether a search by pieces is the cheaper one if the keys are spread evenly."""
    every = comparisons(size_a, size_b, is_same)
    cost = pieces.number * (every >> pieces.bits) + _sorting_cost(size_a, size_b, is_same, pieces, sorting)
    return cost < every


@inner
def cost_of_pieces(
    values_a, a_start, a_end, values_b, b_start, b_end, is_same, pieces, sorting, room_a, room_b
):  # fmt: skip
    """Return what a search by pieces takes, in comparisons. They are counted: keys may be spread unevenly."""
    cost = np.int64(_sorting_cost(a_end - a_start, b_end - b_start, is_same, pieces, sorting))
    for piece in range(pieces.number):
        _count_keys(values_a, a_start, a_end, piece, pieces, room_a.starts)
        if not is_same:
            _count_keys(values_b, b_start, b_end, piece, pieces, room_b.starts)
        others = room_a.starts if is_same else room_b.starts
        for i in range(2, (1 << pieces.bits) + 2):
            cost += comparisons(room_a.starts[i], others[i], is_same)
    return cost


@inner
def plan(
    values_a, a_start, a_end, values_b, b_start, b_end, is_same,
    shift, rest, most_rows, sorting, room_a, room_b,
):  # fmt: skip
    """Return (the pieces by which two buckets are searched, or NO_PIECES for row by row; what it costs).

    Args:
        values_a: sorted by their block, as values_b.
        a_start: of the bucket, which ends before a_end; b_start likewise.
        is_same: it is one bucket.
        shift: the place of the block.
        rest: by how many of the other bits two rows may differ.
        most_rows: of a bucket for which there is room.
        sorting: what sorting and comparing a row costs, in comparisons.
        room_a: for the sorted rows; room_b likewise.
    """
    size_a, size_b = a_end - a_start, b_end - b_start
    cost = comparisons(size_a, size_b, is_same)
    if max(size_a, size_b) > most_rows:
        return NO_PIECES, cost
    pieces = choose_pieces(shift, rest, max(size_a, size_b))
    if not can_win(size_a, size_b, is_same, pieces, sorting):
        return NO_PIECES, cost
    counted = cost_of_pieces(
        values_a, a_start, a_end, values_b, b_start, b_end, is_same, pieces, sorting, room_a, room_b
    )
    return (pieces, counted) if counted < cost else (NO_PIECES, cost)
