"""The pieces of the index that a worker keeps: each is read once, those of a new generation anew."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from db_dedup import Deduplicator
from db_dedup.flow.candidates.segments import SLACK_BYTES, PackedParts, hashes_of
from db_dedup.store import segment_lookup
from db_dedup.store.piece_memory import PieceMemory
from db_dedup.store.segment_lookup import IndexMemory, SegmentSearch
from db_dedup.store.segments import Generation
from tests.flow.reference import sketches_of
from tests.scan.indexes import assert_finds_what_brute_force_does, drawn, fold, store_drawn, stored_table

PIECES = 30
ROOM = 10**6

_PARTS = st.lists(st.binary(min_size=1, max_size=9), max_size=3)
_READ = st.dictionaries(st.integers(0, PIECES - 1), _PARTS, max_size=8)


def generation(number: int) -> Generation:
    return Generation(number, PIECES, 256 * PIECES)


def contents(parts: PackedParts) -> list[bytes]:
    assert parts.packed.size >= SLACK_BYTES + parts.ends.max(initial=0)
    packed = parts.packed.tobytes()
    return [packed[a:b] for a, b in zip(parts.begins.tolist(), parts.ends.tolist(), strict=True)]


def add(memory: PieceMemory, number: int, read: dict[int, list[bytes]]) -> bool:
    """Add pieces whose parts a database returns in any order, but those of a piece in their own."""
    rows = [(piece, part) for piece, parts in sorted(read.items(), reverse=True) for part in parts]
    of = np.array([piece for piece, _ in rows], np.int64)
    return memory.add(generation(number), numbers(read), of, PackedParts.of([part for _, part in rows]))


def numbers(pieces: Any) -> NDArray[np.int64]:
    return np.array(sorted(pieces), np.int64)


@given(st.lists(st.tuples(st.sampled_from([1, 1, 1, 2]), _READ), max_size=8), st.integers(0, 700))
def test_it_has_what_was_added_of_the_last_generation(
    steps: list[tuple[int, dict[int, list[bytes]]]], budget: int
) -> None:
    memory, kept, last = PieceMemory(budget), dict[int, list[bytes]](), 0
    every = np.arange(PIECES)
    for number, read in steps:
        kept, last = (kept if number == last else {}), number
        new = {piece: parts for piece, parts in read.items() if piece not in kept}
        if add(memory, number, new):
            kept |= new
        assert np.flatnonzero(memory.have(generation(number), every)).tolist() == sorted(kept)
        assert not memory.have(generation(3), every).any()
        found = contents(memory.parts_of(numbers(kept)))
        assert found == [part for _, parts in sorted(kept.items()) for part in parts]
        assert sum(map(len, found)) <= budget


def test_it_refuses_what_has_no_room() -> None:
    memory = PieceMemory(8 * PIECES + 16 * 3 + 20)
    assert add(memory, 1, {4: [b"0123456789"], 5: []})
    assert not add(memory, 1, {6: [b"0123456789a"]})
    assert add(memory, 1, {6: [b"0123456789"]})
    assert memory.have(generation(1), np.array([4, 5, 6, 7])).tolist() == [True, True, True, False]
    assert not add(PieceMemory(0), 1, {4: []})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pieces that were read, one after the other."""
    pieces: list[int] = []
    original = SegmentSearch._read

    def read(search: SegmentSearch, generation: Generation, some: NDArray[np.int64]) -> Any:
        pieces.extend(some.tolist())
        return original(search, generation, some)

    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 2)
    monkeypatch.setattr(SegmentSearch, "_read", read)
    return pieces


def test_a_piece_is_read_once(scanned: Deduplicator, reads: list[int]) -> None:
    _, store = stored_table(scanned)
    stored, chance = store_drawn(scanned, folded=10**6), Random(2)
    memory = IndexMemory(piece_bytes=ROOM, threads=2)
    with scanned.database.engine.connect() as connection:
        for _ in range(4):
            asked = [drawn(chance) for _ in range(5)]
            assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
    assert len(reads) == len(set(reads)) > 0


def test_pieces_of_a_new_generation_are_read_anew(scanned: Deduplicator, reads: list[int]) -> None:
    """The folded rows are in these alone."""
    _, store = stored_table(scanned)
    stored, chance = store_drawn(scanned, folded=5), Random(3)
    memory, asked = IndexMemory(piece_bytes=ROOM), [drawn(chance) for _ in range(9)]
    with scanned.database.engine.connect() as connection:
        assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
        connection.rollback()
        before = len(reads)
        assert fold(scanned)
        for _ in range(2):
            assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
    assert len(set(reads[before:])) > 0


@pytest.fixture
def _fold_before_the_third_read(scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What was active before is deleted then."""
    reads, original = count(), SegmentSearch._read

    def read(search: SegmentSearch, generation: Generation, some: NDArray[np.int64]) -> Any:
        if next(reads) == 2:
            assert fold(scanned)
        return original(search, generation, some)

    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    monkeypatch.setattr(SegmentSearch, "_read", read)
    yield
    assert next(reads) > 3


@pytest.mark.usefixtures("_fold_before_the_third_read")
def test_pieces_that_a_fold_deletes_while_they_are_read_are_forgotten(scanned: Deduplicator) -> None:
    _, store = stored_table(scanned)
    sketched = sketches_of([*store_drawn(scanned, folded=150).values()])
    memory, hashes = IndexMemory(piece_bytes=ROOM), np.unique(hashes_of(sketched.values))
    engine = scanned.database.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for _ in range(2):
            found = SegmentSearch(connection, store, hashes, memory).find()
            assert found.postings.rows.size == sketched.values.size
