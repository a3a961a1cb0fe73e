"""What a worker keeps of changed rows: each is read once, and again after it is written."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.compare.feature_sets import PackedSets
from db_dedup.store import sketch_lookup, sketch_memory
from db_dedup.store.sketch_memory import StoredSketches, StoredSketchMemory
from tests.worker.conftest import change, drain_by, is_right, worker_without_scans, write
from tests.worker.test_set_memory import _SENTENCES
from tests.worker.watched import Watched

_ROWS = st.dictionaries(st.integers(1, 40), st.tuples(st.integers(1, 99), st.binary(max_size=5)), max_size=12)


def _stored(rows: dict[int, tuple[int, bytes]]) -> StoredSketches:
    ids = sorted(rows)
    counts = np.array([rows[i][0] for i in ids], np.int64)
    return StoredSketches(np.array(ids, np.int64), counts, PackedSets.of([rows[i][1] for i in ids]))


def _rows(found: StoredSketches) -> dict[int, tuple[int, bytes]]:
    packed, begins, ends = found.sets
    sets = [packed[a:b].tobytes() for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    return {i: (n, each) for i, n, each in zip(found.ids.tolist(), found.counts.tolist(), sets, strict=True)}


def _sentences(chance: Random, count: int) -> str:
    return "".join(chance.sample(_SENTENCES, count))


@given(st.lists(st.tuples(_ROWS, st.sets(st.integers(1, 40))), max_size=8), st.sets(st.integers(1, 40)))
def test_it_finds_what_was_added_and_not_forgotten(
    steps: list[tuple[dict[int, tuple[int, bytes]], set[int]]], wanted: set[int]
) -> None:
    memory, expected = StoredSketchMemory(), dict[int, tuple[int, bytes]]()
    for rows, forgotten in steps:
        new = {i: row for i, row in rows.items() if i not in expected}
        memory.add(_stored(new))
        memory.forget(forgotten)
        expected = {i: row for i, row in (expected | new).items() if i not in forgotten}
    found = memory.find(np.array(sorted(wanted), np.int64))
    assert _rows(found) == {i: row for i, row in expected.items() if i in wanted}
    memory.clear()
    assert _rows(memory.find(np.array(sorted(wanted), np.int64))) == {}


def test_it_forgets_all_rows_where_they_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_memory, "_MOST_BYTES", 40)
    memory, ids = StoredSketchMemory(), np.array([1, 2], np.int64)
    memory.add(_stored({1: (3, b"12345678")}))
    memory.trim()
    assert memory.find(ids).ids.tolist() == [1]
    memory.add(_stored({2: (3, b"9")}))
    memory.trim()
    assert memory.find(ids).ids.size == 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the rows whose sketches were read, one after the other."""
    ids: list[int] = []
    original = sketch_lookup._read_sketched

    def read(connection: Any, store: Any, wanted: Any) -> Any:
        ids.extend(wanted.tolist())
        return original(connection, store, wanted)

    monkeypatch.setattr(sketch_lookup, "_read_sketched", read)
    return ids


def test_a_changed_row_is_read_once(alone: Watched, reads: list[int]) -> None:
    start = "".join(_SENTENCES[:7])
    write(alone, range(12))
    for number in range(12):
        change(alone, number, start + _SENTENCES[20 + number])
    worker = worker_without_scans(alone)
    drain_by(worker)
    reads.clear()
    for number in range(4):  # each finds the other eleven rows
        change(alone, number, start + _SENTENCES[40 + number])
        drain_by(worker)
    # Of the rows that were written one after the other the last one is not needed any more.
    assert len(reads) == len(set(reads)) + 3
    assert is_right(alone)


def test_a_row_that_was_read_changes_again(alone: Watched) -> None:
    """Its former set of features would rule the new pair out."""
    chance, worker = Random(2), worker_without_scans(alone)
    one, other = (_sentences(chance, 7) for _ in range(2))
    write(alone, range(3))
    for text in (one, other):
        for number in range(3):
            change(alone, number, f"{text} {number}")
            drain_by(worker)
    assert is_right(alone)


@pytest.mark.parametrize("most_bytes", [0, 300, 2**20])
def test_a_worker_finds_what_a_scan_finds(
    alone: Watched, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """Rows change, equal each other, part again, and are deleted, whatever the memory has room for."""
    monkeypatch.setattr(sketch_memory, "_MOST_BYTES", most_bytes)
    chance, worker = Random(most_bytes), worker_without_scans(alone)
    texts = [_sentences(chance, 7) for _ in range(4)]
    write(alone, range(16))
    for _ in range(12):
        for number in chance.sample(range(16), 4):
            change(alone, number, chance.choice(texts) + chance.choice(["", "?", _sentences(chance, 1)]))
        with alone.dedup.database.engine.begin() as connection:
            gone = chance.randrange(16)
            connection.execute(alone.letters.delete().where(alone.letters.c.id == gone))
        write(alone, [gone])
        drain_by(worker)
    assert is_right(alone)
