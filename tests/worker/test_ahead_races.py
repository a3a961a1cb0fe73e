"""What other programs do, and what leaves the memory, between the matching ahead and the batches."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.jobs.worker.increments import Increments
from db_dedup.store import watched_tables
from tests.worker.conftest import (
    body,
    change,
    count_waiting,
    drain_by,
    is_right,
    table_id,
    worker_without_scans,
    write,
    write_in_parts,
)
from tests.worker.watched import Watched


def test_features_leave_the_memory_while_a_changed_row_is_searched(alone: Watched) -> None:
    """Their positions change then: sketches must not be looked for where they were."""
    write(alone, range(8))
    worker = worker_without_scans(alone)
    worker.step()
    increment: Any = worker._increments._increment
    increment.cache.budget = 0
    change(alone, 5, body(8) + " and more")  # matched, not written
    assert count_waiting(alone) == 5
    drain_by(worker)
    assert is_right(alone)


def test_a_row_changes_between_two_reads_of_the_matching(
    alone: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its exact duplicate becomes canonical then, and has the pairs that the row had."""
    write(alone, (0, 3))
    with alone.dedup.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO letters_0 SELECT 9, body, region, 9 FROM letters_0 WHERE id = 0"
        )
    drain_by(worker_without_scans(alone))
    assert is_right(alone)
    worker = worker_without_scans(alone)
    change(alone, 0, "for a moment")
    change(alone, 0, body(0))
    original = CandidateTexts.read

    def read(self: CandidateTexts, connection: Connection, rows: Any) -> None:
        monkeypatch.undo()
        change(alone, 0, "something else")
        original(self, connection, rows)

    monkeypatch.setattr(CandidateTexts, "read", read)
    drain_by(worker)
    assert is_right(alone)


@pytest.mark.parametrize("changes_a_part", [1, 4])
def test_a_row_becomes_canonical_that_was_not_matched_ahead(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, changes_a_part: int
) -> None:
    """It must be compared with the rows that were, whether they are written at the same time or later: none
    of its own changes waits."""
    write_in_parts(monkeypatch, changes_a_part)
    write(watched, (0, 3))
    with watched.dedup.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO letters_0 SELECT 9, body, region, 9 FROM letters_0 WHERE id = 0"
        )
    drain_by(worker_without_scans(watched))
    worker = worker_without_scans(watched)
    change(watched, 0, "for a moment")
    change(watched, 0, body(0))
    change(watched, 3, body(6))
    original = CandidateTexts.read

    def read(self: CandidateTexts, connection: Connection, rows: Any) -> None:
        monkeypatch.setattr(CandidateTexts, "read", original)
        change(watched, 0, "something else")
        original(self, connection, rows)

    monkeypatch.setattr(CandidateTexts, "read", read)
    drain_by(worker)
    assert is_right(watched)


def test_nothing_is_matched_while_a_scan_is_running(alone: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch could write it, and the next look at the queue would match it once more."""
    write(alone, range(4))
    worker = worker_without_scans(alone)
    database, matched = alone.dedup.database, []

    def prepare(*_: Any, **__: Any) -> None:
        matched.append(1)

    with database.dialect.write_transaction(database.engine) as connection:
        assert watched_tables.take_lease(connection, database.tables, table_id(alone), "scan") is None
    with monkeypatch.context() as patch:
        patch.setattr(Increments, "prepare", prepare)
        assert worker.step() is None
    assert not matched
    with database.dialect.write_transaction(database.engine) as connection:
        watched_tables.drop_lease(connection, database.tables, "scan")
    drain_by(worker)
    assert is_right(alone)
