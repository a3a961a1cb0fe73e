"""Stages that find texts seen before: Bloom filters and the digit trie.

Each answers, text by text in their order, whether the text was seen before, and remembers it. P3 puts such a
stage before SimHash. Bring texts to one spelling first: equal means equal characters.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, Protocol, Self

import numpy as np
from cityhash import CityHash128
from numpy.typing import NDArray

from db_dedup.errors import InvalidArgumentError
from db_dedup.extras import load
from db_dedup.methods._trie import DIGITS, insert
from db_dedup.methods.hashes import EXTRA, ap, bkdr, cityhash64

P3_BITS: Final = 50_000
"""The size of the Bloom filter in P3."""

_CHECKSUM_BYTES: Final = 16


class SeenTexts(Protocol):
    """Remembers texts."""

    def add(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Remember n texts; return bool[n]: which counted as seen before, also earlier among these n."""
        ...

    @property
    def memory_bytes(self) -> int:
        """How much memory the remembered texts take."""
        ...


class EitherBitFilter:
    """P3's Bloom filter: two hashes, BKDR and AP, and a text counts as seen if either bit is set.

    The usual rule is both bits. With either, a filter of m bits calls a new text seen with the probability
    1 - (1 - s / m)**2 where s bits are set; it never misses a text that it has seen. Time: that of the two
    hashes; memory: a byte for each bit, so that the loop over texts stays simple.
    """

    def __init__(self, bits: int = P3_BITS) -> None:
        """Begin empty.

        Args:
            bits: size of the bit vector, 1 or more.
        """
        if bits < 1:
            raise InvalidArgumentError("a Bloom filter has at least 1 bit, not {bits}", bits=bits)
        self._is_set = np.zeros(bits, np.bool_)

    def add(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Remember n texts; return bool[n]: which counted as seen before."""
        bits = np.uint64(self._is_set.size)
        places = np.stack([bkdr(texts) % bits, ap(texts) % bits], axis=1).astype(np.int64)
        # A bit was set before text i if it is set now or an earlier text of these sets it.
        _, first = np.unique(places, return_index=True)
        is_first = np.zeros(places.size, np.bool_)
        is_first[first] = True
        is_new = is_first.reshape(places.shape) & ~self._is_set[places]
        # Both bits of a text may be the same one, which only its first hash is then the first to set.
        is_new[:, 1] |= (places[:, 0] == places[:, 1]) & is_new[:, 0]
        self._is_set[places] = True
        seen: NDArray[np.bool_] = ~np.all(is_new, axis=1)
        return seen

    @property
    def memory_bytes(self) -> int:
        """A byte for each bit."""
        return self._is_set.nbytes


class BloomFilter:
    """A Bloom filter as usual: a text counts as seen if all its bits are set; by the package rbloom.

    The size and the number of hashes follow from the number of texts and the rate of false answers, 1.44 *
    log2(1 / rate) bits a text. A text that was seen is never missed. The 128-bit CityHash of a text gives its
    bits, so that the filter can be saved. Time: one hash of each text, then log2(1 / rate) bits.
    """

    def __init__(self, expected_texts: int, false_positive_rate: float = 0.001) -> None:
        """Begin empty.

        Args:
            expected_texts: how many different texts keep the rate; with more it rises.
            false_positive_rate: the largest probability that a new text counts as seen, above 0 and below 1.

        Raises:
            MissingExtraError: rbloom is not installed.
            InvalidArgumentError: no texts, or a rate outside of 0 to 1.
        """
        bloom = load("rbloom", EXTRA).Bloom
        if expected_texts < 1 or not 0 < false_positive_rate < 1:
            raise InvalidArgumentError(
                "a Bloom filter needs 1 text or more and a rate between 0 and 1, not {texts} and {rate}",
                texts=expected_texts,
                rate=false_positive_rate,
            )
        self._filter: Any = bloom(expected_texts, false_positive_rate, _signed_hash)

    def add(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Remember n texts; return bool[n]: which counted as seen before."""
        seen = np.zeros(len(texts), np.bool_)
        for i, text in enumerate(texts):
            if text in self._filter:
                seen[i] = True
            else:
                self._filter.add(text)
        return seen

    @property
    def memory_bytes(self) -> int:
        """The bits of the filter."""
        return int(self._filter.size_in_bits) // 8

    def dump(self) -> bytes:
        """Return the filter as bytes that `restore` reads."""
        bits: bytes = self._filter.save_bytes()
        return _checksum(bits) + bits

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """Return a filter that was dumped.

        Raises:
            MissingExtraError: rbloom is not installed.
            InvalidArgumentError: the bytes are not exactly those of a dump.
        """
        # rbloom checks nothing: of a part of the bytes it makes a filter that knows no text, or panics.
        checksum, bits = saved[:_CHECKSUM_BYTES], saved[_CHECKSUM_BYTES:]
        if checksum != _checksum(bits):
            raise InvalidArgumentError(
                "these bytes are no Bloom filter, or not all of one, or were dumped by an earlier version: "
                "make the filter and dump it again"
            )
        restored = cls.__new__(cls)
        restored._filter = load("rbloom", EXTRA).Bloom.load_bytes(bits, _signed_hash)
        return restored


class DigitTrie:
    """P3's trie: the decimal digits of the square of each text's hash, in arrays.

    The hash is CityHash64; P3 does not name its own. Different hashes have different squares, so the trie is
    exact but for equal hashes: among 2.5 million texts one such pair is expected in six million collections.
    A chain of nodes with one child is a single leaf. Otherwise some 32 nodes for each text would take
    gigabytes. With leaves it is 40 bytes for each of about 0.43 inner nodes a text, and 8 for its key. Time:
    a node for each digit until the text is alone, about log10(n) + 1.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._children = np.zeros((2 * DIGITS, 10), np.int32)
        self._keys = np.empty(DIGITS, np.uint64)
        self._sizes = np.array([1, 0], np.int64)

    def add(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Remember n texts; return bool[n]: which were seen before."""
        return self.add_hashes(cityhash64(texts))

    def add_hashes(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Remember the texts of these hashes, uint64[n]; return bool[n]: which were seen before."""
        seen = np.zeros(hashes.size, np.bool_)
        done = 0
        while (done := insert(hashes, done, self._children, self._keys, self._sizes, seen)) < hashes.size:
            self._grow()
        return seen

    @property
    def memory_bytes(self) -> int:
        """The nodes and keys, with the room that is left for more."""
        return self._children.nbytes + self._keys.nbytes

    def _grow(self) -> None:
        """Make the array that is full larger by half."""
        nodes, keys = self._sizes.tolist()
        if nodes + DIGITS > self._children.shape[0]:
            bigger = np.zeros((self._children.shape[0] * 3 // 2, 10), np.int32)
            bigger[:nodes] = self._children[:nodes]
            self._children = bigger
        if keys == self._keys.size:
            self._keys = np.concatenate([self._keys, np.empty(keys // 2 + 1, np.uint64)])


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


def _signed_hash(text: str) -> int:
    """Return a hash from -2**127 to 2**127 - 1, as rbloom takes it."""
    value: int = CityHash128(text.encode("utf-8", "surrogatepass"))
    return value - (1 << 127)
