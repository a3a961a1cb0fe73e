"""Numbers in an array of bytes, bit by bit, the lowest bit first."""

from typing import Final

import numpy as np

from db_dedup.flow._compiled import inner
from db_dedup.flow.candidates._bucket_join import popcount

BITS_AT_ONCE: Final = np.int64(56)
"""How many bits are usable after a load of 64 bits: up to seven of these are before the place."""


@inner
def put_bits(packed, place, value, width):
    """Write the lowest bits of a number; return the place after them. The bits there must be 0."""
    while width > 0:
        offset = place & 7
        taken = min(8 - offset, width)
        part = value & ((np.uint64(1) << np.uint64(taken)) - np.uint64(1))
        packed[place >> 3] |= np.uint8(part << np.uint64(offset))
        value >>= np.uint64(taken)
        place += taken
        width -= taken
    return place


@inner
def put_unary(packed, place, value):
    """Write so many 0 and a 1; return the place after them."""
    place += value
    packed[place >> 3] |= np.uint8(1 << (place & 7))
    return place + 1


@inner
def get_loaded(packed, place):
    """Return the 56 bits from a place on, and up to 8 more."""
    # Unsigned: of a signed position numba asks whether it is negative. Written out, so that the compiler
    # makes one load of it.
    i = np.uint64(place) >> np.uint64(3)
    value = (
        np.uint64(packed[i])
        | (np.uint64(packed[i + np.uint64(1)]) << np.uint64(8))
        | (np.uint64(packed[i + np.uint64(2)]) << np.uint64(16))
        | (np.uint64(packed[i + np.uint64(3)]) << np.uint64(24))
        | (np.uint64(packed[i + np.uint64(4)]) << np.uint64(32))
        | (np.uint64(packed[i + np.uint64(5)]) << np.uint64(40))
        | (np.uint64(packed[i + np.uint64(6)]) << np.uint64(48))
        | (np.uint64(packed[i + np.uint64(7)]) << np.uint64(56))
    )
    return value >> np.uint64(place & 7)


@inner
def get_bits(packed, place, end, width):
    """Return the number of so many bits at a place; the array must have eight bytes after the end.

    Raises:
        ValueError: the bits are not all before the end.
    """
    if place + width > end:
        raise ValueError("a piece of the index ends early")
    if width <= BITS_AT_ONCE:
        return get_loaded(packed, place) & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))
    low = get_loaded(packed, place) & ((np.uint64(1) << np.uint64(32)) - np.uint64(1))
    high = get_loaded(packed, place + 32) & ((np.uint64(1) << np.uint64(width - 32)) - np.uint64(1))
    return low | (high << np.uint64(32))


@inner
def zeros_before_one(value):
    """Return how many 0 there are before the lowest 1; 64 if there is none."""
    return np.int64(popcount(~value & (value - np.uint64(1))))


@inner
def get_unary(packed, place, end):
    """Return (how many 0 there are before the next 1, the place after that).

    Raises:
        ValueError: there is no 1 before the end.
    """
    count = np.int64(0)
    while place < end:
        zeros = zeros_before_one(get_loaded(packed, place))
        if zeros < BITS_AT_ONCE:
            return count + zeros, place + zeros + 1
        count += BITS_AT_ONCE
        place += BITS_AT_ONCE
    raise ValueError("a piece of the index ends early")


@inner
def get_rice(packed, place, end, shift):
    """Return (the number of a Rice code with so many bits after its unary part, the place after it).

    Raises:
        ValueError: the code is not all before the end.
    """
    value = get_loaded(packed, place)
    zeros = zeros_before_one(value)
    if zeros + shift < BITS_AT_ONCE:
        after = place + zeros + 1 + shift
        if after > end:
            raise ValueError("a piece of the index ends early")
        rest = (value >> np.uint64(zeros + 1)) & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
        return (zeros << shift) | np.int64(rest), after
    quotient, place = get_unary(packed, place, end)
    return (quotient << shift) | np.int64(get_bits(packed, place, end, shift)), place + shift
