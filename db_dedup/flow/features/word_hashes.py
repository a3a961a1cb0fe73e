"""The hashes of words, straight from the characters of texts: what `TokenHasher` gives of them as tokens.

The hash is CityHash64 of the word in UTF-8, computed here for words of at most 32 bytes, which nearly all
words are.
"""

from typing import Final

import numpy as np
from cityhash import CityHash64
from numpy.typing import NDArray

from db_dedup.flow._compiled import inner, kernel
from db_dedup.flow._new_arrays import empty

_NO_HASH: Final = 0
_ROW_END: Final = 1
_SHORT_BYTES: Final = 32
_SURELY_SHORT: Final = _SHORT_BYTES // 4
"""Characters that never take more bytes."""

_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def hash_words(
    points: NDArray[np.uint32], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return uint64[m] for `count_features`: the hash of each word, and a mark at the end of each row.

    Args:
        points: uint32[n], the code points of texts.
        begins: int64[m], where each word begins, which is not empty; -1 at the end of a row.
        ends: int64[m], where it ends.
    """
    stream: NDArray[np.uint64] = _hash_words(points, begins, ends)
    for word in np.flatnonzero(ends - begins > _SURELY_SHORT).tolist():
        content = points[begins[word] : ends[word]].tobytes().decode("utf-32-le", "surrogatepass")
        stream[word] = CityHash64(content.encode("utf-8", "surrogatepass"))
    return stream


@kernel
def _hash_words(points, begins, ends):
    """Return the hashes of words, with a mark at the end of each row; a long word has none yet."""
    stream = empty(begins.size, np.uint64)
    content = empty(_SHORT_BYTES, np.uint8)
    for word in range(begins.size):
        if begins[word] < 0:
            stream[word] = _ROW_END
        else:
            size = _encode(points, begins[word], ends[word], content)
            stream[word] = _city_hash(content, size) if size <= _SHORT_BYTES else np.uint64(_NO_HASH)
    return stream


@inner
def _encode(points, begin, end, content):
    """Write a word in UTF-8; return its size, or more than there is room for."""
    size = 0
    for i in range(begin, end):
        point = points[i]
        more = 0 if point < 0x80 else 1 if point < 0x800 else 2 if point < 0x10000 else 3
        if size + more >= content.size:
            return content.size + 1
        if more == 0:
            content[size] = point
        else:
            lead = (0xFF00 >> (more + 1)) & 0xFF
            content[size] = lead | (point >> np.uint32(6 * more))
            for k in range(1, more + 1):
                content[size + k] = 0x80 | ((point >> np.uint32(6 * (more - k))) & 0x3F)
        size += more + 1
    return size


@inner
def _city_hash(content, size):
    """Return CityHash64 of 1 to 32 bytes, as Google published it (version 1.1)."""
    length = np.uint64(size)
    factor = np.uint64(_K2) + length * np.uint64(2)
    if size > 16:
        a = _fetch(content, 0, 8) * np.uint64(_K1)
        b = _fetch(content, 8, 8)
        c = _fetch(content, size - 8, 8) * factor
        d = _fetch(content, size - 16, 8) * np.uint64(_K2)
        one = _rotated(a + b, 43) + _rotated(c, 30) + d
        return _mixed(one, a + _rotated(b + np.uint64(_K2), 18) + c, factor)
    if size >= 8:
        a = _fetch(content, 0, 8) + np.uint64(_K2)
        b = _fetch(content, size - 8, 8)
        c = _rotated(b, 37) * factor + a
        return _mixed(c, (_rotated(a, 25) + b) * factor, factor)
    if size >= 4:
        one = length + (_fetch(content, 0, 4) << np.uint64(3))
        return _mixed(one, _fetch(content, size - 4, 4), factor)
    y = np.uint64(content[0]) + (np.uint64(content[size >> 1]) << np.uint64(8))
    z = length + (np.uint64(content[size - 1]) << np.uint64(2))
    return _shifted(y * np.uint64(_K2) ^ z * np.uint64(_K0)) * np.uint64(_K2)


@inner
def _fetch(content, first, count):
    """Return a number of 4 or 8 bytes, the lowest one first."""
    value = np.uint64(0)
    for i in range(count):
        value |= np.uint64(content[first + i]) << np.uint64(8 * i)
    return value


@inner
def _rotated(value, shift):
    return (value >> np.uint64(shift)) | (value << np.uint64(64 - shift))


@inner
def _shifted(value):
    return value ^ (value >> np.uint64(47))


@inner
def _mixed(one, other, factor):
    value = _shifted((one ^ other) * factor)
    return _shifted((other ^ value) * factor) * factor
