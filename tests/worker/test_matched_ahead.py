"""The worker matches changes before it takes the lock, and writes them a part at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from db_dedup.dialects import open_engine
from db_dedup.engines.embedded import sharing
from db_dedup.engines.embedded.candidate_search import CandidateSearch
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.increment.prepared import Prepared, prepare
from db_dedup.engines.embedded.pair_search import PairSearch
from db_dedup.flow.pipeline import Fingerprinter
from tests.servers import Database
from tests.worker.conftest import (
    body,
    change,
    count_waiting,
    drain_by,
    is_right,
    worker_without_scans,
    write,
    write_in_parts,
)
from tests.worker.watched import Watched

LONG_STEPS = (
    (Fingerprinter, "fingerprint"),
    (sharing, "sharing_pairs"),
    (sharing, "may_be_alike"),
    (CandidateTexts, "confirm"),
)


@pytest.fixture
def alone(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Scanned empty, attached; two changes are written at a time."""
    write_in_parts(monkeypatch, 2)
    return watched


def test_all_changes_are_matched_at_once_and_written_in_parts(
    alone: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched: list[int] = []
    original = prepare

    def noted(*arguments: Any) -> Prepared:
        found = original(*arguments)
        matched.append(len(found.rows))
        return found

    monkeypatch.setattr("db_dedup.engines.embedded.increment.increment.prepare", noted)
    write(alone, range(20))
    assert drain_by(worker_without_scans(alone)) >= 10
    assert len(matched) < 5
    assert is_right(alone)


def test_nothing_is_fingerprinted_while_the_lock_is_held(
    alone: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alone, range(6))
    worker = worker_without_scans(alone)
    drain_by(worker)
    fingerprinted: list[int] = []
    original = Fingerprinter.fingerprint

    def fingerprint(self: Fingerprinter, rows: Sequence[Sequence[str]], *others: Any, **more: Any) -> Any:
        fingerprinted.append(len(rows))
        return original(self, rows, *others, **more)

    monkeypatch.setattr(Fingerprinter, "fingerprint", fingerprint)
    write(alone, range(6, 12))
    worker.step()
    ahead = len(fingerprinted)
    while worker.step():
        pass
    assert sum(fingerprinted) >= 6
    assert len(fingerprinted) == ahead
    assert is_right(alone)


def test_sqlite_can_be_written_during_each_long_step_ahead(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a rollback journal, a transaction that has read something blocks the commits of others.

    The engine is one of ours: in an engine of the user's the driver begins no transaction for a SELECT.
    """
    own = open_engine(sqlite_database.url, create=True)
    watched = Watched.make(own, 0)
    write(watched, range(12))
    drain_by(worker_without_scans(watched))
    steps: list[str] = []
    blocking: list[str] = []

    def look(name: str) -> None:
        steps.append(name)
        file = str(sqlite_database.engine.url.database)
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                blocking.append(name)

    def ahead(*arguments: Any) -> Prepared:
        with pytest.MonkeyPatch.context() as patched:
            for holder, name in LONG_STEPS:
                patched.setattr(holder, name, watched_step(name, getattr(holder, name)))
            return prepare(*arguments)

    def watched_step(name: str, original: Any) -> Any:
        def step(*arguments: Any, **more: Any) -> Any:
            look(name)
            return original(*arguments, **more)

        return step

    monkeypatch.setattr("db_dedup.engines.embedded.increment.increment.prepare", ahead)
    for number in range(6):
        change(watched, number, f"{body(number)} indeed")
    drain_by(worker_without_scans(watched))
    assert set(steps) == {name for _, name in LONG_STEPS}
    assert blocking == []
    assert is_right(watched)
    own.dispose()


def test_nothing_is_searched_or_compared_while_the_lock_is_held(
    alone: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row's former text is a candidate of its new one, and its exact duplicates become canonical."""
    write(alone, range(12))
    drain_by(worker_without_scans(alone))
    locked: list[str] = []
    original = PairSearch.find_after

    def find_after(*arguments: Any) -> Any:
        with monkeypatch.context() as patched:
            for searcher, name in (
                (PairSearch, "find"),
                (CandidateSearch, "among"),
                (PairSearch, "_confirmed"),
            ):
                patched.setattr(searcher, name, lambda *_, name=name: locked.append(name))
            return original(*arguments)

    monkeypatch.setattr(PairSearch, "find_after", find_after)
    for number in range(6):
        change(alone, number, f"{body(number)} indeed")
    drain_by(worker_without_scans(alone))  # another one: it has no former text in memory
    assert locked == []
    assert is_right(alone)


@pytest.mark.parametrize("text", [body(3), "nothing of the kind"])
def test_a_row_that_changes_after_it_was_matched(alone: Watched, text: str) -> None:
    write(alone, range(8))
    worker = worker_without_scans(alone)
    worker.step()
    worker.step()
    assert count_waiting(alone) > 0
    change(alone, 1, text)  # written already
    change(alone, 7, text)  # matched, not written
    drain_by(worker)
    assert is_right(alone)


def test_another_worker_writes_after_the_matching(alone: Watched) -> None:
    write(alone, range(10))
    one, other = worker_without_scans(alone), worker_without_scans(alone)
    one.step()
    other.step()
    one.step()
    write(alone, range(10, 13))
    drain_by(other)
    drain_by(one)
    assert is_right(alone)


def test_a_text_that_comes_back_while_its_change_waits(alone: Watched) -> None:
    """Its pairs were left out while it was another: the waiting change must find them."""
    write(alone, (0, 1, 2))
    drain_by(worker_without_scans(alone))
    worker = worker_without_scans(alone)
    write(alone, (3, 4))
    change(alone, 0, "something else")
    worker._size.changes = worker._size.limit = worker._size._most = 1
    worker.step()
    change(alone, 0, body(0))
    drain_by(worker)
    assert is_right(alone)
