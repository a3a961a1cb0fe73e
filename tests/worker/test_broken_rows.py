"""Rows that cannot be handled: parked and visible, the others go on; brought back once they are mended."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, Text
from db_dedup.errors import DatabaseError
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.store import changes
from db_dedup.store.changes import Change
from tests.servers import Database
from tests.worker.conftest import (
    POISON,
    body,
    change,
    count_waiting,
    dead,
    drain,
    is_right,
    worker_without_scans,
    write,
)
from tests.worker.watched import Watched


def test_a_broken_row_is_parked_and_comes_back(watched: Watched, poisoned: pytest.MonkeyPatch) -> None:
    write(watched, (0, 3, 1, 4))
    change(watched, 3, f"{body(3)} {POISON}")
    batches = drain(watched)
    assert sum(batch.dead for batch in batches) == 1
    assert [(d.row_key, d.attempts, d.error) for d in dead(watched)] == [("3", 3, "ValueError")]
    assert {pair[:2] for pair in watched.stored()["pairs"]} == {("1", "4")}

    poisoned.undo()
    assert watched.dedup.retry() == 1
    assert (dead(watched), count_waiting(watched)) == ([], 1)
    drain(watched)
    assert dead(watched) == []
    assert is_right(watched)


def test_a_parked_row_is_not_queued_again_by_its_neighbours(
    watched: Watched, poisoned: pytest.MonkeyPatch
) -> None:
    write(watched, (0, 3))
    drain(watched)
    change(watched, 3, POISON)
    drain(watched)
    (parked,) = dead(watched)
    write(watched, (6,))
    assert sum(batch.dead for batch in drain(watched)) == 0
    assert dead(watched) == [parked]

    poisoned.undo()
    watched.dedup.retry()
    drain(watched)
    assert dead(watched) == []
    assert is_right(watched)


def test_a_row_that_was_mended_needs_no_retry(watched: Watched, poisoned: pytest.MonkeyPatch) -> None:
    write(watched, (0, 3))
    change(watched, 3, POISON)
    drain(watched)
    assert dead(watched)
    change(watched, 3, body(3))
    drain(watched)
    assert dead(watched) == []
    assert is_right(watched)
    poisoned.undo()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_broken_row_is_looked_for_in_halves_and_with_pauses(
    watched: Watched, poisoned: pytest.MonkeyPatch
) -> None:
    write(watched, range(100))
    change(watched, 70, POISON)
    worker = worker_without_scans(watched)
    worker._size.changes = worker._size._most = 200
    steps: list[str] = []
    handle, batches = worker._batches.handle, worker._batches

    def noted(row_key: str | None = None, at_most: int | None = None) -> Batch | None:
        steps.append("batch" if row_key is None else "row")
        return handle(row_key, at_most)

    poisoned.setattr(batches, "handle", noted)
    poisoned.setattr(time, "sleep", lambda seconds: steps.append("pause" if seconds else "none"))
    done: list[Batch] = []
    while not worker.is_drained():
        batch = worker.step()
        assert batch is not None
        done.append(batch)
    assert (sum(batch.changes for batch in done), sum(batch.dead for batch in done)) == (101, 1)
    assert steps.count("row") < 20
    assert steps.count("batch") < 20
    before = [steps[i - 1] for i, step in enumerate(steps) if step == "row"]
    assert set(before) == {"pause"}


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_a_row_mended_during_the_last_attempt_is_not_parked_for_good(
    watched: Watched, poisoned: pytest.MonkeyPatch
) -> None:
    write(watched, (0, 3))
    change(watched, 3, POISON)
    original = changes.park

    def park(*arguments: Any) -> None:
        change(watched, 3, body(3))
        original(*arguments)

    poisoned.setattr(changes, "park", park)
    drain(watched)
    assert dead(watched) == []
    poisoned.undo()
    assert is_right(watched)


_RAISES = (
    "CREATE FUNCTION judged(number int) RETURNS boolean LANGUAGE plpgsql AS "
    "'BEGIN IF number = 0 THEN RAISE ''no zero''; END IF; RETURN true; END'"
)
"""A function of the user's that raises an error of its own."""

_OF_JSON = "json_extract(received, '$.s') = 1"


@pytest.mark.parametrize(
    ("database", "column_type", "where", "good", "bad"),
    [
        ("sqlite", "TEXT", _OF_JSON, '{"s": 1}', "{bad"),
        ("postgresql", "int", "10 / received > 0", 1, 0),
        ("postgresql", "int", "judged(received)", 1, 0),
        ("mariadb", "bigint unsigned", "received - 1 >= 0", 1, 0),
        ("mysql", "bigint unsigned", "received - 1 >= 0", 1, 0),
        ("mysql", "varchar(90)", _OF_JSON, '{"s": 1}', "{bad"),
    ],
    indirect=["database"],
)
def test_a_row_that_the_database_cannot_judge_is_parked(
    database: Database, column_type: str, where: str, good: object, bad: object
) -> None:
    make = f"CREATE TABLE letters (id int PRIMARY KEY, body varchar(400), received {column_type})"
    store = text("INSERT INTO letters VALUES (:id, :body, :received)")
    # So many that rows are read through the index, and no other row's condition is evaluated.
    others = [{"id": 1000 + i, "body": f"{i * 7919:x}", "received": good} for i in range(2000)]
    with database.engine.begin() as connection:
        for statement in (make, _RAISES) if "judged" in where else (make,):
            connection.execute(text(statement))
        connection.execute(store, others)
    with database.engine.begin() as connection:
        connection.execute(text("ANALYZE TABLE letters" if database.name == "mariadb" else "ANALYZE"))
    dedup = Deduplicator(database.engine, "letters", {"body": Text()}, where=where, segmenter="words")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    worker = dedup.worker()
    with database.engine.begin() as connection:
        for number, received in ((0, good), (3, good), (1, bad)):
            connection.execute(store, {"id": number, "body": body(number), "received": received})
    done = [worker.step(), worker.step()]
    assert [(batch.changes, batch.dead) for batch in done if batch] == [(3, 1)]
    assert _pairs(dedup) == [("0", "3")]

    # Where it is a candidate, the others are compared all the same; a new worker has no text in memory.
    worker = dedup.worker()
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE letters SET received = :bad WHERE id = 3"), {"bad": bad})
        connection.execute(store, {"id": 6, "body": body(6), "received": good})
    done = [worker.step(), worker.step()]
    assert [(batch.changes, batch.dead) for batch in done if batch] == [(2, 1)]
    assert _pairs(dedup) == [("0", "3"), ("0", "6")]


def test_a_condition_that_fails_for_every_row_gives_none_up(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE letters (id int PRIMARY KEY, body varchar(400))"))
        connection.execute(text("CREATE TABLE hidden (id int)"))
    where = "id NOT IN (SELECT id FROM hidden)"
    dedup = Deduplicator(database.engine, "letters", {"body": Text()}, where=where, segmenter="words")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    worker = dedup.worker()
    store = text("INSERT INTO letters VALUES (:id, :body)")
    for number in (0, 3):
        with database.engine.begin() as connection:
            connection.execute(store, {"id": number, "body": body(number)})
            if number:
                connection.execute(text("DROP TABLE hidden"))
        if not number:
            assert worker.step() is not None
    with pytest.raises(DatabaseError, match="hidden"):
        worker.step()
    with dedup.database.engine.connect() as connection:
        assert changes.read_dead(connection, dedup.database.tables, 1) == []
        assert changes.count_waiting(connection, dedup.database.tables, 1) == 1


@pytest.mark.parametrize("key", ["2024-A7", '["one"]'])
def test_a_queued_key_that_is_none_is_parked(database: Database, key: str) -> None:
    dedup = _files(database, "VARCHAR(90)", key=("name", "part"))
    ours = dedup.database
    with ours.dialect.write_transaction(ours.engine) as connection:
        changes.append_changes(connection, ours.dialect, ours.tables, 1, [Change(key, changes.SEARCH_AGAIN)])
    with database.engine.begin() as connection:
        for name in ("a", "b"):
            row = {"name": name, "part": "1", "body": body(0)}
            connection.execute(text("INSERT INTO files VALUES (:name, :part, :body)"), row)
    worker = dedup.worker()
    while not worker.is_drained():
        worker.step()
    assert _pairs(dedup) == [('["a","1"]', '["b","1"]')]


def test_a_key_that_is_too_long_is_parked(database: Database) -> None:
    kind = "VARCHAR(900) CHARACTER SET ascii" if database.name == "mariadb" else "VARCHAR(900)"
    dedup = _files(database, kind)
    with database.engine.begin() as connection:
        for name in ("a", "b", "c" * 800):
            connection.execute(
                text("INSERT INTO files VALUES (:name, :body)"), {"name": name, "body": body(0)}
            )
    worker = dedup.worker()
    for _ in range(2):
        batch = worker.step()
        assert batch is not None
        assert batch.dead == 1
        assert worker.is_drained()
        assert _pairs(dedup) == [("a", "b")]
        # Brought back, it is given up again, and does not vanish.
        assert dedup.retry() == 1


def test_a_key_that_is_too_long_stays_parked_while_the_row_that_it_begins_with_is_handled(
    database: Database,
) -> None:
    kind = "VARCHAR(900) CHARACTER SET ascii" if database.name == "mariadb" else "VARCHAR(900)"
    dedup = _files(database, kind)
    insert = text("INSERT INTO files VALUES (:name, :body)")
    worker = dedup.worker()
    for name, parked in (("c" * 701, 1), ("c" * 700, 0)):
        with database.engine.begin() as connection:
            connection.execute(insert, {"name": name, "body": body(0)})
        batch = worker.step()
        assert batch is not None
        assert batch.dead == parked
    assert dedup.retry() == 1


@pytest.mark.parametrize("is_own_engine", [False, True])
@pytest.mark.parametrize(
    ("database", "key_type", "key"),
    [
        ("sqlite", "TEXT", "CAST(X'61FF' AS TEXT)"),
        ("sqlite", "TEXT", "'a' || char(0) || 'b'"),
        ("mariadb", "VARCHAR(90) COLLATE utf8mb4_bin", "CONCAT('a', CHAR(0), 'b')"),
        ("mysql", "VARCHAR(90) COLLATE utf8mb4_bin", "CONCAT('a', CHAR(0), 'b')"),
    ],
    indirect=["database"],
)
def test_a_key_that_is_no_text_is_parked(
    database: Database, key_type: str, key: str, is_own_engine: bool
) -> None:
    """Not valid UTF-8; with a NUL character in it."""
    dedup = _files(database, key_type, database.engine if is_own_engine else database.url)
    with database.engine.begin() as connection:
        connection.execute(text(f"INSERT INTO files VALUES ({key}, :body)"), {"body": body(0)})
        connection.execute(text("INSERT INTO files VALUES ('a', :body), ('b', :body)"), {"body": body(0)})
    batch = dedup.worker().step()
    assert batch is not None
    assert (batch.changes, batch.dead) == (3, 1)
    assert _pairs(dedup) == [("a", "b")]
    dedup.database.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_key_that_is_no_text_is_parked_beside_a_broken_row(
    database: Database, poisoned: pytest.MonkeyPatch, is_first: bool
) -> None:
    """No query can ask for the changes of such a key alone."""
    dedup = _files(database, "TEXT", database.url)
    rows = ["CAST(X'61FF' AS TEXT), 'any'", f"'c', '{POISON}'"]
    with database.engine.begin() as connection:
        for row in rows if is_first else reversed(rows):
            connection.execute(text(f"INSERT INTO files VALUES ({row})"))
        connection.execute(text("INSERT INTO files VALUES ('a', :body), ('b', :body)"), {"body": body(0)})
    worker = dedup.worker()
    while not worker.is_drained():
        worker.step()
    with dedup.database.engine.connect() as connection:
        parked = changes.read_dead(connection, dedup.database.tables, 1)
    assert sorted(each.row_key for each in parked) == [r"a\udcff", "c"]
    poisoned.undo()
    assert _pairs(dedup) == [("a", "b")]


@pytest.mark.parametrize("database", ["mariadb", "mysql"], indirect=True)
def test_a_key_in_another_spelling_is_the_same_row_under_another_key(database: Database) -> None:
    dedup = _files(database, "VARCHAR(90) COLLATE utf8mb4_general_ci")
    worker = dedup.worker()
    steps = (
        "INSERT INTO files VALUES ('a', :body), ('b', :body)",
        "UPDATE files SET name = 'A' WHERE name = 'a'",
    )
    for statement in steps:
        with database.engine.begin() as connection:
            connection.execute(text(statement), {"body": body(0)})
        batch = worker.step()
        assert batch is not None
        assert batch.dead == 0
    assert _pairs(dedup) == [("A", "b")]


def _files(
    database: Database, key_type: str, target: Any = None, key: tuple[str, ...] = ("name",)
) -> Deduplicator:
    """A watched table, scanned empty; without a `target` of the engine of the database."""
    columns = [f"{column} {key_type} NOT NULL" for column in key]
    columns += ["body VARCHAR(400)", f"PRIMARY KEY ({', '.join(key)})"]
    with database.engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE files ({', '.join(columns)})"))
    dedup = Deduplicator(target or database.engine, "files", {"body": Text()}, segmenter="words")
    dedup.upgrade()
    dedup.attach()
    dedup.scan()
    return dedup


def _pairs(dedup: Deduplicator) -> list[tuple[str, str]]:
    return [(pair.key_a, pair.key_b) for pair in dedup.pairs()]


def test_changes_that_the_failed_attempt_had_not_taken_stay_in_the_queue(watched: Watched) -> None:
    write(watched, (0, 3))
    drain(watched)
    change(watched, 3, body(4))
    worker = watched.dedup.worker()
    worker._batches.taken = ()
    assert worker._broken_rows._park("3", ValueError()) == 0
    assert (dead(watched), count_waiting(watched)) == ([], 1)
