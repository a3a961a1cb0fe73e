"""The loops of the string hashes, over the bytes of all tokens at once.

Each kernel takes the bytes of m tokens, uint8, their slices, int64[m + 1], and a mask of the 32 or 64 lowest
bits, and returns uint64[m].
"""

import numpy as np

from db_dedup.flow._compiled import kernel
from db_dedup.flow._new_arrays import empty


@kernel
def bkdr(data, starts, mask):
    """Multiply by 131 and add the next byte."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        value = np.uint64(0)
        for i in range(starts[token], starts[token + 1]):
            value = value * np.uint64(131) + np.uint64(data[i])
        hashes[token] = value & mask
    return hashes


@kernel
def djb(data, starts, mask):
    """Begin with 5381, multiply by 33 and add the next byte."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        value = np.uint64(5381)
        for i in range(starts[token], starts[token + 1]):
            value = value * np.uint64(33) + np.uint64(data[i])
        hashes[token] = value & mask
    return hashes


@kernel
def rs(data, starts, mask):
    """Multiply by a factor that is itself multiplied by 378551 after each byte."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        value, factor = np.uint64(0), np.uint64(63689)
        for i in range(starts[token], starts[token + 1]):
            value = value * factor + np.uint64(data[i])
            factor = factor * np.uint64(378551)
        hashes[token] = value & mask
    return hashes


@kernel
def js(data, starts, mask):
    """Mix the value with its shifts to both sides."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        value = np.uint64(1315423911)
        for i in range(starts[token], starts[token + 1]):
            mixed = (value << np.uint64(5)) + np.uint64(data[i]) + (value >> np.uint64(2))
            value = (value ^ mixed) & mask
        hashes[token] = value
    return hashes


@kernel
def ap(data, starts, mask):
    """Mix the value with its shifts, by turns in two ways."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        value = np.uint64(0xAAAAAAAA)
        for i in range(starts[token], starts[token + 1]):
            byte = np.uint64(data[i])
            if (i - starts[token]) % 2 == 0:
                mixed = (value << np.uint64(7)) ^ (byte * (value >> np.uint64(3)))
            else:
                mixed = ~((value << np.uint64(11)) + (byte ^ (value >> np.uint64(5))))
            value = (value ^ mixed) & mask
        hashes[token] = value
    return hashes


@kernel
def multiply_xor(points, starts, mask):
    """Multiply by 1000003 and XOR with the next character; at the end XOR with the number of characters."""
    hashes = empty(starts.size - 1, np.uint64)
    for token in range(hashes.size):
        first, end = starts[token], starts[token + 1]
        value = np.uint64(0)
        if first < end:
            value = np.uint64(points[first]) << np.uint64(7)
            for i in range(first, end):
                value = (value * np.uint64(1000003)) ^ np.uint64(points[i])
            value = value ^ np.uint64(end - first)
        hashes[token] = value & mask
    return hashes
