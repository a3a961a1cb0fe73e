"""Hash functions of tokens: CityHash64, the one of SimHash itself, BKDR, Murmur, AP, DJB, JS and RS.

P1 compares SimHash on CityHash64, on the hash of SimHash's own code and on a 64-bit BKDR; P3 sets the bits of
its Bloom filter by BKDR and AP. Each takes m tokens and returns uint64[m]; the time is that of reading their
bytes. AP, BKDR, DJB, JS and RS are those of A. Partow's collection of general purpose hash functions. They
are published with 32 bits; with 64 bits the same steps are computed modulo 2**64.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
from cityhash import CityHash64
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.extras import load
from db_dedup.flow._code_points import code_points
from db_dedup.methods import _hash_kernels as kernels

EXTRA: Final = "methods"

_Kernel = Callable[[NDArray[Any], NDArray[np.int64], np.uint64], NDArray[np.uint64]]


def cityhash64(tokens: Sequence[str]) -> NDArray[np.uint64]:
    """Return uint64[m], CityHash64 of each token's UTF-8: the hash of the product's own fingerprints (P1)."""
    return np.fromiter(map(CityHash64, _encoded(tokens)), np.uint64, len(tokens))


def simhash_own(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], the hash that P1 calls SimHash's own.

    Taken to be the one of the SimHash code that is in general use: the string hash of Python 2, of any width.
    The value begins with the first character times 128, is multiplied by 1000003 and combined by XOR with
    each character, and at last with their number. Characters are code points. "" is 0.
    """
    points = code_points("".join(tokens))
    hashes: NDArray[np.uint64] = kernels.multiply_xor(points, _starts(map(len, tokens)), _mask(bits))
    return hashes


def bkdr(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], BKDR with the factor 131 (P1 with 64 bits, P3). "" is 0."""
    return _hashed(kernels.bkdr, tokens, bits)


def ap(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], AP (P3)."""
    return _hashed(kernels.ap, tokens, bits)


def djb(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], DJB."""
    return _hashed(kernels.djb, tokens, bits)


def js(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], JS."""
    return _hashed(kernels.js, tokens, bits)


def rs(tokens: Sequence[str], bits: int = 64) -> NDArray[np.uint64]:
    """Return uint64[m], RS. "" is 0."""
    return _hashed(kernels.rs, tokens, bits)


def murmur(tokens: Sequence[str]) -> NDArray[np.uint64]:
    """Return uint64[m], the first half of MurmurHash3 with 128 bits, by the package mmh3.

    Raises:
        MissingExtraError: mmh3 is not installed.
    """
    hash64 = load("mmh3", EXTRA).hash64
    return np.fromiter((hash64(token, signed=False)[0] for token in _encoded(tokens)), np.uint64, len(tokens))


def _encoded(tokens: Sequence[str]) -> list[bytes]:
    return [token.encode("utf-8", "surrogatepass") for token in tokens]


def _hashed(kernel: _Kernel, tokens: Sequence[str], bits: int) -> NDArray[np.uint64]:
    encoded = _encoded(tokens)
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return kernel(data, _starts(map(len, encoded)), _mask(bits))


def _starts(lengths: "map[int]") -> NDArray[np.int64]:
    return np.array([0, *accumulate(lengths)], np.int64)


def _mask(bits: int) -> np.uint64:
    if bits not in {32, 64}:
        raise InvalidArgumentError("a hash has 32 or 64 bits, not {bits}", bits=bits)
    return np.uint64((1 << bits) - 1)
