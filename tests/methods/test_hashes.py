"""Hash functions: published values, and a second implementation with Python's own integers."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.errors import ConfigError
from db_dedup.methods import HASHES, ap, bkdr, cityhash64, djb, js, murmur, rs, simhash_own

Hash = Callable[[list[str], int], NDArray[np.uint64]]
PUBLISHED_KEY = "abcdefghijklmnopqrstuvwxyz1234567890"


def python_bkdr(data: bytes, mask: int) -> int:
    value = 0
    for byte in data:
        value = (value * 131 + byte) & mask
    return value


def python_djb(data: bytes, mask: int) -> int:
    value = 5381
    for byte in data:
        value = ((value << 5) + value + byte) & mask
    return value


def python_rs(data: bytes, mask: int) -> int:
    value, factor = 0, 63689
    for byte in data:
        value = (value * factor + byte) & mask
        factor *= 378551
    return value


def python_js(data: bytes, mask: int) -> int:
    value = 1315423911
    for byte in data:
        value = (value ^ ((value << 5) + byte + (value >> 2))) & mask
    return value


def python_ap(data: bytes, mask: int) -> int:
    value = 0xAAAAAAAA
    for i, byte in enumerate(data):
        even, odd = (value << 7) ^ byte * (value >> 3), ~((value << 11) + (byte ^ (value >> 5)))
        value = (value ^ (odd if i % 2 else even)) & mask
    return value


SECOND: dict[Hash, Callable[[bytes, int], int]] = {
    bkdr: python_bkdr,
    djb: python_djb,
    rs: python_rs,
    js: python_js,
    ap: python_ap,
}


@pytest.mark.parametrize(
    ("function", "published"),
    [(rs, 4097835502), (js, 1651003062), (bkdr, 3153586616), (djb, 729241521), (ap, 882643939)],
)
def test_published_values_of_32_bits(function: Hash, published: int) -> None:
    assert function([PUBLISHED_KEY], 32).tolist() == [published]


@pytest.mark.parametrize("function", SECOND)
@settings(max_examples=25)  # of each of many
@given(tokens=st.lists(st.text(max_size=20), max_size=5), bits=st.sampled_from([32, 64]))
def test_a_second_implementation_gives_the_same(function: Hash, tokens: list[str], bits: int) -> None:
    expected = [SECOND[function](token.encode("utf-8", "surrogatepass"), (1 << bits) - 1) for token in tokens]
    assert function(tokens, bits).tolist() == expected


@given(tokens=st.lists(st.text(max_size=20), max_size=5), bits=st.sampled_from([32, 64]))
def test_the_hash_of_simhash_itself(tokens: list[str], bits: int) -> None:
    """As the SimHash code in general use has it: 128 bits, of which the last ones are taken."""

    def python(token: str) -> int:
        if not token:
            return 0
        value = ord(token[0]) << 7
        for character in token:
            value = ((value * 1000003) ^ ord(character)) & ((1 << 128) - 1)
        return (value ^ len(token)) & ((1 << bits) - 1)

    assert simhash_own(tokens, bits).tolist() == [python(token) for token in tokens]


def test_golden_values_of_libraries() -> None:
    # The first 64 bits of MurmurHash3 x64 128 of "hello", and CityHash64 1.1 of the same.
    assert murmur(["hello"]).tolist() == [0xCBD8A7B341BD9B02]
    assert cityhash64(["hello"]).tolist() == [13009744463427800296]


@pytest.mark.parametrize("name", HASHES)
def test_every_hash_takes_any_text(name: str) -> None:
    tokens = ["", "\ud800", "\0", "施工", "x" * 10_000]
    hashes = HASHES[name].load()(tokens)
    assert hashes.dtype == np.uint64
    assert hashes.shape == (5,)
    assert len(set(hashes.tolist())) >= 4, "BKDR and RS do not tell an empty text from a NUL"
    assert HASHES[name].load()([]).shape == (0,)


def test_other_widths_are_refused() -> None:
    with pytest.raises(ConfigError, match="32 or 64 bits, not 16"):
        bkdr(["a"], 16)
