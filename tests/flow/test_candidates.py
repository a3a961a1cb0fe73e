"""No pair within the radius is ever missed and none is given twice, all held against brute force."""

from collections.abc import Callable
from math import comb
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup.flow.candidates import blocks as candidates
from db_dedup.flow.candidates.blocks import (
    MAX_RADIUS,
    block_radii,
    block_values,
    candidate_pairs,
    flip_masks,
)
from db_dedup.flow.matching.groups import flatten
from db_dedup.records.fingerprints import BLOCK_SHIFTS
from tests.flow.reference import near_pairs

RADII = range(MAX_RADIUS + 1)
Fingerprints = NDArray[np.uint64]


def random_bits(mask: int, count: int, seed: int = 1) -> Fingerprints:
    """Fingerprints that vary in the bits of the mask only."""
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64) & np.uint64(mask)


def planted(count: int) -> Fingerprints:
    """Random ones, each with a partner 0 to 13 bits away."""
    chance = np.random.default_rng(2)
    originals = chance.integers(0, 2**64, count, np.uint64)
    masks = [sum(1 << int(bit) for bit in chance.choice(64, i % 14, replace=False)) for i in range(count)]
    return chance.permutation(np.concatenate([originals, originals ^ np.array(masks, np.uint64)]))


def hot(mask: int, count: int) -> Fingerprints:
    """Half of them vary in the bits of the mask only, so that the other blocks are hot."""
    return np.concatenate([random_bits(mask, count // 2), random_bits(2**64 - 1, count // 2, 3)])


TABLES: dict[str, Callable[[], Fingerprints]] = {
    "uniform": lambda: random_bits(2**64 - 1, 200),
    "planted": lambda: planted(100),
    "skewed": lambda: random_bits(0x8011_0101_1001_0007, 150),
    "top bit set": lambda: planted(100) | np.uint64(1 << 63),
    "one block hot": lambda: hot(0x0000_1111_0303_8101, 200),
    "two blocks hot": lambda: hot(0x0000_0000_8F0F_1111, 200),
    "all equal": lambda: random_bits(0, 150) + np.uint64(2**64 - 3),
    "two values": lambda: random_bits(1 << 63, 200),
    "one row": lambda: random_bits(2**64 - 1, 1),
    "empty": lambda: random_bits(2**64 - 1, 0),
}
# Blocked down to the last bucket, these are searched thousands of times, so they are short.
SHORT_TABLES: dict[str, Callable[[], Fingerprints]] = {
    "uniform": lambda: planted(15),
    "skewed": lambda: random_bits(0x8011_0101_1001_0007, 28),
    "one block hot": lambda: random_bits(0x0000_8111_1001_0101, 24),
    "three blocks hot": lambda: random_bits(0x0000_0000_0000_0107, 16),
    "all equal": lambda: random_bits(0, 20),
}


@pytest.fixture(params=["compared whole", "in buckets", "in small chunks", "by pieces"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are compared whole, unless what counts as much is little."""
    if request.param == "by pieces":
        by_pieces(monkeypatch)
        return
    hot_comparisons, chunk = {"in buckets": (6000, 1 << 20), "in small chunks": (20, 5)}.get(
        request.param, (candidates._HOT_COMPARISONS, candidates._CHUNK)
    )
    monkeypatch.setattr(candidates, "_HOT_COMPARISONS", hot_comparisons)
    monkeypatch.setattr(candidates, "_FEW_COMPARISONS", hot_comparisons)
    monkeypatch.setattr(candidates, "_CHUNK", chunk)


def by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting costs nothing, so that small buckets are searched by pieces, and no table is compared whole."""
    monkeypatch.setattr(candidates, "_SORTING", 0)
    monkeypatch.setattr(candidates._Search, "_comparing_is_cheaper", lambda *_: False)


@pytest.fixture
def depths(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Every hot pair of buckets is blocked again, however cheap to compare; the numbers of blocks left."""
    join, depths = candidates._Search.join, set()

    def watched_join(self: Any, left: Any, right: Any, shifts: Any, *rest: Any) -> Any:
        depths.add(len(shifts))
        return join(self, left, right, shifts, *rest)

    def is_small(self: Any, left: Any, right: Any, radii: Any) -> bool:  # noqa: ARG001 - as the original
        return bool(self._count_comparisons(left, right) <= 20)

    monkeypatch.setattr(candidates, "_HOT_COMPARISONS", 20)
    monkeypatch.setattr(candidates, "_CHUNK", 50)
    monkeypatch.setattr(candidates._Search, "join", watched_join)
    monkeypatch.setattr(candidates._Search, "_comparing_is_cheaper", is_small)
    return depths


def found_pairs(
    fingerprints: Fingerprints,
    radius: int,
    labels: NDArray[np.int32] | None = None,
    within: NDArray[np.int32] | None = None,
) -> list[tuple[int, int]]:
    pairs = []
    for left, right in candidate_pairs(fingerprints, radius, labels, within):
        assert left.dtype == right.dtype == np.int32
        pairs += list(zip(left.tolist(), right.tolist(), strict=True))
    return pairs


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("way")
def test_every_pair_once(table: str, radius: int) -> None:
    fingerprints = TABLES[table]()
    assert sorted(found_pairs(fingerprints, radius)) == list(near_pairs(fingerprints, radius))


@pytest.mark.parametrize("smallest", [2, 5, 100])
@pytest.mark.parametrize("classes", [1, 3, 40])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.usefixtures("way")
def test_pairs_within_a_class(
    table: str, classes: int, smallest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes of one row, small ones and large ones, in any order."""
    monkeypatch.setattr(candidates, "_SMALL_CLASS", smallest)
    fingerprints = TABLES[table]()
    within = (np.random.default_rng(5).geometric(2 / (classes + 1), fingerprints.size) - 2).astype(np.int32)
    expected = [(a, b) for a, b in near_pairs(fingerprints, 7) if within[a] == within[b]]
    assert sorted(found_pairs(fingerprints, 7, None, within)) == expected
    labels = np.arange(fingerprints.size, dtype=np.int32) // 2
    apart = [(a, b) for a, b in expected if labels[a] != labels[b]]
    assert sorted(found_pairs(fingerprints, 7, labels, within)) == apart


def test_equal_rows_of_many_classes_are_not_paired() -> None:
    """All pairs of these rows would take hours and all memory."""
    count = 1_000_000
    within = np.arange(count, dtype=np.int32) // 2
    pairs = found_pairs(np.zeros(count, np.uint64), 3, None, within)
    assert pairs == [(row, row + 1) for row in range(0, count, 2)]


@given(st.integers(0, MAX_RADIUS), st.integers(0, 2**64 - 1), st.integers(20, 120))
@settings(max_examples=60)
def test_pieces_miss_no_pair(radius: int, seed: int, count: int) -> None:
    """Rows are near one of four centres, which share a block; some buckets have many of them."""
    chance = Random(seed)
    centres = [seed ^ place << 20 for place in range(4)]
    values = [
        chance.choice(centres) ^ sum(1 << bit for bit in chance.sample(range(64), chance.randrange(14)))
        for _ in range(count)
    ]
    fingerprints = np.array(values, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        by_pieces(patch)
        assert sorted(found_pairs(fingerprints, radius)) == list(near_pairs(fingerprints, radius))


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("table", SHORT_TABLES)
@pytest.mark.usefixtures("depths")
def test_every_pair_once_at_every_depth(table: str, radius: int) -> None:
    fingerprints = SHORT_TABLES[table]()
    assert sorted(found_pairs(fingerprints, radius)) == list(near_pairs(fingerprints, radius))


def test_the_depths_are_reached(depths: set[int]) -> None:
    found_pairs(SHORT_TABLES["all equal"](), 3)
    assert depths == {4, 3, 2, 1, 0}


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.usefixtures("way")
def test_rows_of_one_label_are_no_pair(radius: int) -> None:
    fingerprints = TABLES["one block hot"]()
    labels = np.random.default_rng(4).integers(0, 6, fingerprints.size, np.int32)
    expected = [(a, b) for a, b in near_pairs(fingerprints, radius) if labels[a] != labels[b]]
    assert sorted(found_pairs(fingerprints, radius, labels)) == expected


@pytest.mark.parametrize("joins", ["all", "some"])
@pytest.mark.parametrize("table", ["planted", "two blocks hot", "two values"])
@pytest.mark.parametrize("radius", [0, 3, 7, 11])
@pytest.mark.usefixtures("way")
def test_what_is_left_out_while_labels_merge_is_joined_at_the_end(
    table: str, radius: int, joins: str
) -> None:
    fingerprints = TABLES[table]()
    roots = np.arange(fingerprints.size, dtype=np.int32)
    given: list[tuple[int, int]] = []
    for left, right in candidate_pairs(fingerprints, radius, roots):
        assert np.all(roots[left] != roots[right])
        pairs = list(zip(left.tolist(), right.tolist(), strict=True))
        given += pairs
        for a, b in pairs:
            if joins == "all" or (a + b) % 3 == 0:
                merge(roots, a, b)
        flatten(roots)
    expected = near_pairs(fingerprints, radius)
    assert len(given) == len(set(given))
    assert set(given) <= expected.keys()
    assert all(roots[a] == roots[b] for a, b in expected.keys() - set(given))


def merge(roots: NDArray[np.int32], a: int, b: int) -> None:
    first, second = sorted((int(roots[a]), int(roots[b])))
    if first != second:
        roots[roots == second] = first


@pytest.mark.parametrize("radius", [-1, 12])
def test_other_radii_are_refused(radius: int) -> None:
    with pytest.raises(ValueError, match=f"radius must be 0 to 11 bits, not {radius}"):
        next(candidate_pairs(TABLES["uniform"](), radius))


@given(
    st.integers(0, 2**64 - 1), st.sets(st.integers(0, 63), max_size=MAX_RADIUS), st.integers(0, MAX_RADIUS)
)
@example(2**64 - 1, {63}, 1)
@settings(max_examples=300)
def test_a_look_up_meets_every_near_row(fingerprint: int, bits: set[int], radius: int) -> None:
    stored = fingerprint ^ sum(1 << bit for bit in sorted(bits)[:radius])
    values = block_values(fingerprint, radius)
    assert any((stored >> shift) & 0xFFFF in values[i] for i, shift in enumerate(BLOCK_SHIFTS))


@pytest.mark.parametrize("radius", RADII)
def test_a_look_up_is_no_wider_than_it_must_be(radius: int) -> None:
    values = block_values(0x8000_FFFF_0000_1234, radius)
    wide, narrow = {0: (1, 0), 1: (17, 1), 2: (137, 17)}[radius // 4]
    assert [len(of_block) for of_block in values] == [wide if i <= radius % 4 else narrow for i in range(4)]
    assert all(len(of_block) == len(set(of_block)) for of_block in values)
    assert all(0 <= value < 1 << 16 for of_block in values for value in of_block)


def test_the_widths_of_blocks() -> None:
    assert [block_radii(radius) for radius in (3, 7, 11)] == [[0] * 4, [1] * 4, [2] * 4]
    assert block_radii(0) == [0, -1, -1, -1]
    assert block_radii(5) == [1, 1, 0, 0]
    assert block_radii(7, 3) == [2, 2, 1]


@pytest.mark.parametrize("radius", range(5))
def test_masks_are_all_those_with_so_few_bits(radius: int) -> None:
    masks = flip_masks(radius).tolist()
    assert sorted(masks) == [mask for mask in range(1 << 16) if mask.bit_count() <= radius]
    assert len(masks) == sum(comb(16, bits) for bits in range(radius + 1))
    assert [mask.bit_count() for mask in masks] == sorted(mask.bit_count() for mask in masks)
