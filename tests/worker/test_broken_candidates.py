"""Exactly the row that cannot be handled is parked: not those of its batch, nor those it is compared with."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, Text
from db_dedup.errors import DedupError, SegmenterError
from db_dedup.jobs.worker.increments import Increments
from tests.servers import Database
from tests.worker.conftest import POISON, body, change, dead, drain, is_right, write
from tests.worker.watched import Watched


@pytest.mark.parametrize("batch_changes", [1, 500])
def test_rows_like_a_broken_one_are_not_parked(
    watched: Watched, poisoned: pytest.MonkeyPatch, batch_changes: int
) -> None:
    """It is stored as it was before, so that they have it as a candidate."""
    write(watched, (0, 3, 6, 1, 4))
    drain(watched)
    change(watched, 0, f"{body(0)} more")
    change(watched, 3, f"{body(3)} {POISON}")
    change(watched, 6, body(3))
    write(watched, (12, 15, 7))
    drain(watched, batch_changes)
    assert [(parked.row_key, parked.attempts) for parked in dead(watched)] == [("3", 3)]
    assert {("0", "15"), ("1", "7")} <= {pair[:2] for pair in watched.stored()["pairs"]}

    poisoned.undo()
    watched.dedup.retry()
    drain(watched)
    assert dead(watched) == []
    assert is_right(watched)


@pytest.mark.parametrize("poison_error", [SegmenterError])
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_text_on_which_the_segmenter_fails_is_parked(
    watched: Watched, poisoned: pytest.MonkeyPatch
) -> None:
    write(watched, (0, 3))
    drain(watched)
    change(watched, 3, f"{body(3)} {POISON}")
    drain(watched)
    assert [(parked.row_key, parked.attempts) for parked in dead(watched)] == [("3", 3)]
    poisoned.undo()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_error_that_is_of_no_row_is_a_fault_of_the_table(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_ready(*_: object) -> None:
        raise RuntimeError("no dictionary")

    write(watched, (0, 3))
    monkeypatch.setattr(Increments, "make_ready", make_ready)
    with pytest.raises(DedupError, match="the worker of 'letters_0' failed with RuntimeError"):
        drain(watched)
    assert dead(watched) == []


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_rows_like_one_that_the_database_cannot_judge_are_not_parked(database: Database) -> None:
    """The error ends the statement; what the transaction has done before it stands."""
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id int PRIMARY KEY, body text, received int)"))
    dedup = Deduplicator(
        database.engine, "letters", {"body": Text()}, where="10 / received > 0", segmenter="words"
    )
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    worker = dedup.worker()
    for statement in (
        "INSERT INTO letters VALUES (0, :body, 1), (3, :body, 2)",
        "UPDATE letters SET received = 0 WHERE id = 3",
        "INSERT INTO letters VALUES (6, :body, 1)",
    ):
        with database.engine.begin() as connection:
            connection.execute(text(statement), {"body": f"{body(0)} {statement[:6]}"})
        if "(3" in statement:
            worker.step()
    parked = [batch.dead for _ in range(3) if (batch := worker.step())]
    assert sum(parked) == 1
    assert worker.is_drained()
    assert {(pair.key_a, pair.key_b) for pair in dedup.pairs()} >= {("0", "6")}


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_candidate_that_the_database_cannot_judge_is_passed_over_before_the_lock(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Its error ends the transaction that reads; those after it are read in another one."""
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id int PRIMARY KEY, body text, received int)"))
    dedup = Deduplicator(
        database.engine, "letters", {"body": Text()}, where="10 / received > 0", segmenter="words"
    )
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    insert, worker = text("INSERT INTO letters VALUES (:id, :body, 1)"), dedup.worker()
    with database.engine.begin() as connection:
        connection.execute(insert, [{"id": number, "body": f"{body(0)} part{number}"} for number in range(9)])
    assert worker.step()
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE letters SET received = 0 WHERE id = 3"))
    while not worker.is_drained():
        worker.step()
    with database.engine.begin() as connection:
        connection.execute(insert, {"id": 9, "body": f"{body(0)} part9"})
    with caplog.at_level(logging.INFO):
        assert dedup.worker().step()  # another one, which has no features in memory
    assert "matching ahead" not in caplog.text
    found = {pair.key_a for pair in dedup.pairs() if pair.key_b == "9"}
    assert found == {str(number) for number in range(9)} - {"3"}


def test_a_key_of_two_columns_with_a_nul_character_is_parked(sqlite_database: Database) -> None:
    engine = sqlite_database.engine
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE files (name TEXT, part TEXT, body TEXT, PRIMARY KEY (name, part))")
        )
    dedup = Deduplicator(engine, "files", {"body": Text()}, segmenter="words")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    names = ["a", "b", "c\0d", r"e\u0000f"]
    with engine.begin() as connection:
        for name in names:
            row = {"name": name, "body": body(0)}
            connection.execute(text("INSERT INTO files VALUES (:name, '1', :body)"), row)
    batch = dedup.worker().step()
    assert batch is not None
    assert (batch.changes, batch.dead) == (4, 1)
    assert [group.size for group in dedup.groups()] == [3]
