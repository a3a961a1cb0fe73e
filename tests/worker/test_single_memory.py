"""The single entries that a worker keeps in memory: it finds what the database has, whoever writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.engines.embedded.increment import increment
from db_dedup.errors import DedupError
from db_dedup.flow.candidates.segments import Entries, hashes_of
from db_dedup.jobs.scan.folding import fold
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.store import single_entries, single_memory, sketch_lookup, watched_tables
from db_dedup.store.segment_lookup import ALL_IDS
from db_dedup.store.single_memory import SingleMemory
from db_dedup.store.sketches import count_single_entries, read_single_sketches
from tests.worker.conftest import (
    body,
    change,
    drain_by,
    is_right,
    worker_without_scans,
    write,
)
from tests.worker.watched import Watched

_SKETCHES = st.dictionaries(
    st.integers(1, 30), st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True), max_size=8
)


@given(st.lists(_SKETCHES, min_size=1, max_size=5), st.sets(st.integers(0, 12)), st.data())
def test_it_finds_the_entries_of_all_that_was_added(
    added: list[dict[int, list[int]]], wanted: set[int], data: st.DataObject
) -> None:
    ids = data.draw(st.sampled_from([ALL_IDS, (5, 20), (7, 7)]))
    memory = SingleMemory()
    every = [(value, row_id) for some in added for row_id, values in some.items() for value in values]
    for number, some in enumerate(added):
        sketches = {row_id: np.array(values, np.uint64).tobytes() for row_id, values in some.items()}
        if number == 0:
            memory.load(_entries([(value, row_id) for row_id, values in some.items() for value in values]))
        else:
            memory.add(sketches)
        if data.draw(st.booleans()):
            memory.find(np.empty(0, np.uint32), ALL_IDS)
    hashes = np.unique(hashes_of(np.array(sorted(wanted), np.uint64)))
    found = memory.find(hashes, ids)
    expected = _entries(
        [(value, row_id) for value, row_id in every if value in wanted and ids[0] <= row_id <= ids[1]]
    )
    assert _pairs(found) == _pairs(expected)


def _pairs(entries: Entries) -> list[tuple[int, int]]:
    return sorted(zip(entries.hashes.tolist(), entries.ids.tolist(), strict=True))


def _entries(pairs: list[tuple[int, int]]) -> Entries:
    values = np.array([value for value, _ in pairs], np.uint64)
    return Entries(hashes_of(values), np.array([row_id for _, row_id in pairs], np.int64))


def test_what_is_written_before_it_is_loaded_is_left_out() -> None:
    memory = SingleMemory()
    memory.add({1: np.zeros(1, np.uint64).tobytes()})
    assert not memory.is_loaded


def test_it_is_dropped_when_its_entries_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_memory, "MOST_ENTRIES", 3)
    memory = SingleMemory()
    memory.load(_entries([(1, 1), (2, 1)]))
    memory.add({2: np.arange(1, dtype=np.uint64).tobytes()})
    assert memory.is_loaded
    memory.add({3: np.arange(1, dtype=np.uint64).tobytes()})
    assert not memory.is_loaded


@pytest.fixture
def look_ups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values were looked up in the database, each time."""
    counts: list[int] = []
    original = single_entries.read_entries

    def read_entries(connection: Any, store: Any, wanted: Any, *others: Any) -> Any:
        counts.append(len(wanted))
        return original(connection, store, wanted, *others)

    monkeypatch.setattr(sketch_lookup, "read_entries", read_entries)
    return counts


def memory_of(worker: TableWorker) -> SingleMemory:
    increment: Any = worker._increments._increment
    memory: SingleMemory = increment.cache.index.single
    return memory


def test_a_worker_looks_single_entries_up_in_memory(alone: Watched, look_ups: list[int]) -> None:
    worker = worker_without_scans(alone)
    for first in (0, 12, 24):
        write(alone, range(first, first + 12))
        drain_by(worker)
    assert look_ups == []
    assert is_right(alone)


def test_another_worker_writes_in_between(alone: Watched) -> None:
    """What it wrote is not in the memory of the first one, which reads everything again."""
    one, other = worker_without_scans(alone), worker_without_scans(alone)
    for first in (0, 12, 24):
        write(alone, range(first, first + 6))
        drain_by(one)
        write(alone, range(first + 6, first + 12))
        drain_by(other)
    assert is_right(alone)


def test_a_batch_that_fails_leaves_no_entries_behind(alone: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = worker_without_scans(alone)
    write(alone, range(6))
    drain_by(worker)
    assert memory_of(worker).is_loaded
    write(alone, range(6, 12))
    with monkeypatch.context() as patched:
        patched.setattr(watched_tables, "bump_answer_version", _fail)
        with pytest.raises(DedupError, match="failed with RuntimeError"):
            worker.step()
    assert not memory_of(worker).is_loaded
    drain_by(worker)
    assert is_right(alone)


def _fail(*_: Any) -> None:
    raise RuntimeError("as if the process ended here")


def test_the_index_is_folded_in_between(alone: Watched) -> None:
    """By then the entries are in segments, and those in memory are forgotten."""
    worker, database = worker_without_scans(alone), alone.dedup.database
    write(alone, range(24))
    drain_by(worker)
    before = _count(memory_of(worker))
    with database.engine.connect() as connection:
        stored = alone.read_stored(connection)
    assert fold(database.engine, database.dialect, database.tables, stored)
    change(alone, 3, body(3) + " indeed")
    drain_by(worker)  # the first look-up finds that they are folded
    change(alone, 4, body(4) + " indeed")
    drain_by(worker)
    assert 0 < _count(memory_of(worker)) < before
    assert is_right(alone)


def _count(memory: SingleMemory) -> int:
    assert memory._entries is not None
    return memory._entries.ids.size + sum(added.ids.size for added in memory._added)


def test_too_many_single_entries_stay_in_the_database(
    alone: Watched, look_ups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_memory, "MOST_ENTRIES", 60)
    worker = worker_without_scans(alone)
    for first in (0, 12, 24):
        write(alone, range(first, first + 12))
        drain_by(worker)
    assert look_ups
    assert is_right(alone)


def test_too_many_single_entries_are_counted_once(alone: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def count(connection: Any, store: Any) -> int:
        counts.append(count_single_entries(connection, store))
        return counts[-1]

    write(alone, range(12))
    drain_by(worker_without_scans(alone))
    monkeypatch.setattr(increment, "count_single_entries", count)
    monkeypatch.setattr(increment, "_FEW_ENTRIES", 60)
    monkeypatch.setattr(increment, "MOST_ENTRIES", 60)
    worker = worker_without_scans(alone)
    for first in (12, 24, 36):
        write(alone, range(first, first + 12))
        drain_by(worker)
    assert not memory_of(worker).is_loaded
    assert len(counts) == 1
    assert is_right(alone)


@pytest.mark.parametrize(("few", "by_entries"), [(60, False), (10**6, True)])
def test_the_rows_of_few_single_entries_are_found_by_these(
    alone: Watched, monkeypatch: pytest.MonkeyPatch, few: int, *, by_entries: bool
) -> None:
    """All rows of the table are read where there are many."""
    ways: list[bool] = []

    def read(reader: Any, store: Any, *, by_entries: bool) -> Any:
        ways.append(by_entries)
        return read_single_sketches(reader, store, by_entries=by_entries)

    write(alone, range(12))
    drain_by(worker_without_scans(alone))
    monkeypatch.setattr(increment, "_FEW_ENTRIES", few)
    monkeypatch.setattr(increment, "read_single_sketches", read)
    worker = worker_without_scans(alone)
    write(alone, range(12, 24))
    drain_by(worker)
    assert memory_of(worker).is_loaded
    assert ways == [by_entries]
    assert is_right(alone)
