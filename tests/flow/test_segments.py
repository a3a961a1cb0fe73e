"""Segments of the index of sketches: what is packed comes out again, and damage is noticed."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from db_dedup.flow.candidates import segments
from db_dedup.flow.candidates._packed_parts import MOST_ENTRIES_A_PART, pack_parts
from db_dedup.flow.candidates.postings import Postings
from db_dedup.flow.candidates.segments import (
    Entries,
    PackedParts,
    Part,
    count_pieces,
    find_postings,
    first_hash_of,
    hashes_of,
    narrowed,
    pack,
    pieces_of,
    sort_entries,
    sorted_entries,
    sums_of_sketches,
    unpack,
)
from db_dedup.flow.candidates.sketches import Sketches
from tests.flow.reference import sketches_of
from tests.flow.test_postings import listed

EXTREME_HASHES = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
EXTREME_IDS = st.sampled_from([1, 2, 2**31, 2**32, 2**62, 2**63 - 1])
ENTRIES = st.lists(
    st.tuples(st.integers(0, 2**32 - 1) | EXTREME_HASHES, st.integers(1, 10**6) | EXTREME_IDS), max_size=60
)

MANY_PIECES = 2**24


def entries_of(pairs: list[tuple[int, int]]) -> Entries:
    hashes, ids = np.array(pairs, np.uint64).reshape(-1, 2).T
    return sort_entries(Entries(hashes.astype(np.uint32), ids.astype(np.int64)))


def pairs_of(entries: Entries) -> list[tuple[int, int]]:
    return list(zip(entries.hashes.tolist(), entries.ids.tolist(), strict=True))


def packed(entries: Entries, piece_count: int) -> list[Part]:
    return list(pack(entries, piece_count))


def found_in(parts: list[bytes], *wanted: Any) -> Postings:
    return find_postings(PackedParts.of(parts), *wanted)


@given(ENTRIES, st.sampled_from([1, 2, 7, 1000, 2**20]))
@example([(0, 1), (78, 2), (2**32 - 1, 2**63 - 1)], MANY_PIECES)
@settings(max_examples=200)
def test_what_is_packed_comes_out_again(pairs: list[tuple[int, int]], piece_count: int) -> None:
    _check_packed(pairs, piece_count)


@pytest.mark.thorough  # each example takes memory for all pieces
@given(ENTRIES)
@settings(max_examples=40)
def test_what_is_packed_into_many_pieces_comes_out_again(pairs: list[tuple[int, int]]) -> None:
    _check_packed(pairs, MANY_PIECES)


def _check_packed(pairs: list[tuple[int, int]], piece_count: int) -> None:
    entries = entries_of(pairs)
    parts = packed(entries, piece_count)
    assert pairs_of(unpack([part.packed for part in parts])) == sorted(pairs)
    places = [(part.piece, part.part) for part in parts]
    assert places == sorted(set(places))
    for part in parts:
        own = unpack([part.packed])
        assert set(pieces_of(own.hashes, piece_count).tolist()) == {part.piece}
        least, end = (first_hash_of(part.piece + i, piece_count) for i in (0, 1))
        assert all(least <= hashed < end for hashed in own.hashes.tolist())


@pytest.mark.parametrize("count", [MOST_ENTRIES_A_PART, MOST_ENTRIES_A_PART + 1, 3 * MOST_ENTRIES_A_PART])
def test_a_frequent_hash_is_divided_into_parts(count: int) -> None:
    pairs = [(7, row) for row in range(1, count + 1)] + [(9, 5), (2**31, 6)]
    parts = packed(entries_of(pairs), 2)
    assert [part.piece for part in parts].count(0) == -(-(count + 1) // MOST_ENTRIES_A_PART)
    assert [part.part for part in parts if part.piece == 0] == list(range(len(parts) - 1))
    assert pairs_of(unpack([part.packed for part in parts])) == pairs
    assert all(len(part.packed) < 2**16 for part in parts)


def test_a_row_may_stand_twice_under_a_hash() -> None:
    pairs = [(7, 3), (7, 3), (7, 4), (8, 4), (8, 4)]
    assert pairs_of(unpack([part.packed for part in packed(entries_of(pairs), 1)])) == pairs


@given(ENTRIES, st.lists(st.integers(0, 2**32 - 1) | EXTREME_HASHES, max_size=5), st.integers(0, 10**6))
@settings(max_examples=100)
def test_entries_are_found_by_hash_and_row(
    pairs: list[tuple[int, int]], others: list[int], first_id: int
) -> None:
    wanted = np.unique(np.array([hashed for hashed, _ in pairs[::2]] + others, np.uint32))
    parts = [part.packed for part in packed(entries_of(pairs), 3)]
    found = found_in(parts, wanted, first_id, 10**9, 10**6)
    expected = sorted(p for p in pairs if p[0] in wanted.tolist() and first_id <= p[1] <= 10**9)
    assert listed(found) == expected
    assert listed(found_in(parts, wanted, first_id, 10**9, 2)) == expected[:2]


def test_parts_of_other_rows_are_passed_over() -> None:
    """A frequent hash is read by ranges of ids: unpacking all its parts for each would be quadratic."""
    ids = np.arange(10_000, 10_000 + 3 * MOST_ENTRIES_A_PART, dtype=np.int64)
    parts = [part.packed for part in pack(Entries(np.full(ids.size, 7, np.uint32), ids), 1)]
    wanted = np.array([7], np.uint32)
    for i, part in enumerate(parts):
        damaged = [other if other is part else other[:17] for other in parts]
        own = ids[i * MOST_ENTRIES_A_PART : (i + 1) * MOST_ENTRIES_A_PART]
        first, last = int(own[0]), int(own[-1])
        assert found_in(damaged, wanted, first, last, 10**6).rows.tolist() == own.tolist()
        assert found_in(parts, wanted, first - 1, last + 1, 10**6).rows.size == own.size + (i > 0) + (i < 2)


def test_nothing_is_unpacked_after_the_most_entries() -> None:
    parts = [part.packed for part in packed(entries_of([(7, 1), (7, 2), (2**31, 3)]), 2)]
    damaged = [parts[0], parts[1][:17]]
    wanted = np.array([7, 2**31], np.uint32)
    assert found_in(damaged, wanted, 0, 10, 2).rows.tolist() == [1, 2]
    with pytest.raises(ValueError, match="ends early"):
        found_in(damaged, wanted, 0, 10, 3)


@pytest.mark.parametrize(("at_a_time", "sorts"), [((1 << 20, 1 << 22), 1), ((1, 1000), 4)])
def test_the_entries_of_sketches_come_sorted_whatever_the_ids(
    at_a_time: tuple[int, int], sorts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_ENTRIES_A_SORT", at_a_time)
    chance = Random(1)
    rows = [sorted({chance.getrandbits(64) for _ in range(chance.randrange(40))}) for _ in range(300)]
    sketches = sketches_of([np.array(row, np.uint64).tobytes() for row in rows])
    places = np.array(chance.sample(range(300), 200), np.int64)
    ids = np.array(chance.sample(range(1, 10**9), 200), np.int64)
    expected = sorted(
        (hashed, row_id)
        for place, row_id in zip(places.tolist(), ids.tolist(), strict=True)
        for hashed in hashes_of(sketches.of(place)).tolist()
    )
    count = count_pieces(len(expected))
    parts = [*sorted_entries(sketches, places, ids, count)]
    assert [pair for some in parts for pair in pairs_of(some)] == expected
    assert count == len(expected) // 256 > sorts
    assert sorts <= len(parts) <= count
    pieces = [set(pieces_of(some.hashes, count).tolist()) for some in parts]
    assert sum(map(len, pieces)) == len(set().union(*pieces)), "no piece is divided"


def test_the_kind_of_a_hash_is_kept() -> None:
    """The lowest bit tells hashes of which one is enough from those of which a share is needed."""
    values = np.random.default_rng(1).integers(0, 2**64, 1000, dtype=np.uint64)
    assert np.array_equal(hashes_of(values) & 1, values & np.uint64(1))
    assert np.unique(hashes_of(values)).size == 1000
    small = np.arange(2000, dtype=np.uint64)
    assert np.bincount(pieces_of(hashes_of(small), 4), minlength=4).min() > 400, "spread evenly"


def test_a_checksum_notices_each_entry() -> None:
    values = np.array([1, 2, 3, 4, 6, 9], np.uint64)
    sketches = Sketches(np.array([0, 3, 3, 6]), values)
    sums = sums_of_sketches(sketches, np.arange(3))
    assert sums[1] == 0
    assert len(set(sums.tolist())) == 3
    other = sums_of_sketches(Sketches(sketches.starts, values + np.uint64(2)), np.arange(3))
    assert not set(sums.tolist()) - {0} & set(other.tolist())
    assert narrowed(sketches).of(0).tolist() == sorted(hashes_of(values[:3]).tolist())


@pytest.mark.parametrize("seed", range(30))
def test_damage_is_noticed_or_gives_other_entries(seed: int) -> None:
    """Never an access outside the part, however it is cut or changed."""
    chance = Random(seed)
    pairs = sorted({(chance.getrandbits(32), chance.randrange(1, 10**6)) for _ in range(200)})
    (part,) = packed(entries_of(pairs), 1)
    damaged = bytearray(part.packed[: chance.choice([0, 5, 16, 17, 100, len(part.packed)])])
    for _ in range(3 * (len(damaged) > 100)):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    try:
        found = unpack([bytes(damaged)])
    except ValueError:
        return
    assert pairs_of(found) != pairs


@pytest.mark.parametrize("step", [0, 1])
def test_a_part_with_too_many_entries_is_damaged(step: int) -> None:
    """There would be no room for them in memory."""
    count = MOST_ENTRIES_A_PART + 1
    hashes = np.arange(count, dtype=np.uint32) * np.uint32(step)
    content, _ = pack_parts(hashes, np.arange(1, count + 1), np.array([0, count]))
    with pytest.raises(ValueError, match="too many rows"):
        unpack([content.tobytes()])
    if not step:
        with pytest.raises(ValueError, match="too many rows"):
            found_in([content.tobytes()], hashes[:1], 1, count, count)


def test_parts_with_the_same_hashes_are_damaged() -> None:
    """Only the last hash of a part may be in the next one, too."""
    hashes = np.arange(20, dtype=np.uint32)
    content, _ = pack_parts(hashes, np.arange(1, 21), np.array([0, 20]))
    with pytest.raises(ValueError, match="too many rows"):
        found_in([content.tobytes()] * 3, hashes, 1, 20, 100)
