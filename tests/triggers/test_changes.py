"""What every database queues."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    delete,
    insert,
    select,
    text,
    update,
)

from db_dedup import Deduplicator
from db_dedup.store.clock import utc_now
from tests.dialects.tables import run
from tests.scan.test_user_tables import KEYS, ODD_NAMES
from tests.servers import Database
from tests.thorough import quick_first
from tests.triggers.conftest import attached, changes, petitions, queued_by

THREE = (
    "INSERT INTO petitions VALUES "
    "(1, 'a', 'x', '1', 'new'), (2, 'b', 'x', '2', 'new'), (3, NULL, 'y', '3', 'new')"
)


def test_a_row_comes_changes_and_goes(database: Database) -> None:
    dedup = petitions(database)
    assert queued_by(dedup, database, THREE) == [("1", "I"), ("2", "I"), ("3", "I")]
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'c' WHERE id = 1") == [("1", "U")]
    assert queued_by(dedup, database, "DELETE FROM petitions WHERE id < 3") == [("1", "D"), ("2", "D")]


def test_a_change_says_which_table_and_when(database: Database) -> None:
    dedup = petitions(database)
    before = utc_now()
    run(database, THREE)
    table, watched = dedup.database.tables.change, dedup.database.tables.watched_table
    with database.engine.connect() as connection:
        rows = connection.execute(select(table)).all()
        number = connection.scalar(select(watched.c.id).where(watched.c.name == "petitions"))
    assert {row.table_id for row in rows} == {number}
    leeway = dt.timedelta(seconds=1)  # SQLite counts in milliseconds
    assert all(before - leeway <= row.queued_at <= utc_now() + leeway for row in rows)


def test_only_what_counts(database: Database) -> None:
    dedup = petitions(database, THREE, order="received", within="region")
    for statement in (
        "UPDATE petitions SET status = 'done'",
        "UPDATE petitions SET body = body, region = region, id = id, status = 'again'",
        "DELETE FROM petitions WHERE id = 99",
    ):
        assert queued_by(dedup, database, statement) == [], statement
    for column in ("body", "region", "received"):
        update = f"UPDATE petitions SET {column} = 'other' WHERE id = 1"
        assert queued_by(dedup, database, update) == [("1", "U")], column


def test_with_a_condition_every_column_counts(database: Database) -> None:
    dedup = petitions(database, THREE, where="status <> 'spam'")
    assert queued_by(dedup, database, "UPDATE petitions SET status = 'spam' WHERE id = 2") == [("2", "U")]


def test_null_is_a_value_like_others(database: Database) -> None:
    dedup = petitions(database, THREE)
    assert queued_by(dedup, database, "UPDATE petitions SET body = NULL") == [("1", "U"), ("2", "U")]
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'd' WHERE id = 3") == [("3", "U")]


@pytest.mark.parametrize(("before", "after"), [("a", "A"), ("a", "ä"), ("a", "a "), ("é", "e\u0301")])
def test_texts_that_a_collation_calls_equal_differ(database: Database, before: str, after: str) -> None:
    dedup = petitions(database, THREE)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE petitions SET body = :b WHERE id = 1"), {"b": before})
        connection.execute(delete(dedup.database.tables.change))
        connection.execute(text("UPDATE petitions SET body = :b WHERE id = 1"), {"b": after})
    assert changes(dedup) == [("1", "U")]


def test_another_key_is_a_row_that_goes_and_one_that_comes(database: Database) -> None:
    dedup = petitions(database, THREE)
    assert queued_by(dedup, database, "UPDATE petitions SET id = 7 WHERE id = 1") == [("1", "D"), ("7", "I")]
    both = queued_by(dedup, database, "UPDATE petitions SET id = 8, body = 'z' WHERE id = 7")
    assert both == [("7", "D"), ("8", "I")]


def test_many_rows_in_a_statement(database: Database) -> None:
    dedup = petitions(database)
    rows = ", ".join(f"({i}, 'text {i}', 'x', '{i}', 'new')" for i in range(500))
    assert len(queued_by(dedup, database, f"INSERT INTO petitions VALUES {rows}")) == 500
    assert len(queued_by(dedup, database, "UPDATE petitions SET body = 'same' WHERE id < 300")) == 300
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'same' WHERE id < 300") == []
    assert len(queued_by(dedup, database, "DELETE FROM petitions")) == 500


def test_a_rollback_leaves_nothing(database: Database) -> None:
    dedup = petitions(database, THREE)
    with database.engine.connect() as connection:
        connection.execute(text("UPDATE petitions SET body = 'gone'"))
        savepoint = connection.begin_nested()
        connection.execute(text("DELETE FROM petitions"))
        savepoint.rollback()
        assert len(connection.execute(select(dedup.database.tables.change)).all()) == 3
        connection.rollback()
    assert changes(dedup) == []


@pytest.mark.parametrize("kind", quick_first(KEYS))
def test_the_queue_and_a_scan_call_a_row_the_same(database: Database, kind: str) -> None:
    types, keys = KEYS[kind]
    columns: list[Column[Any]] = [
        Column(name, type_, primary_key=True, autoincrement=False) for name, type_ in types.items()
    ]
    table = Table("petitions", MetaData(), *columns, Column("body", Text))
    table.create(database.engine)
    dedup = attached(database)
    with database.engine.begin() as connection:
        for key in keys:
            connection.execute(
                insert(table).values({**dict(zip(types, key, strict=True)), "body": "暖气不热"})
            )
    queued = changes(dedup)
    with database.engine.begin() as connection:
        connection.execute(update(table).values(body="停水"))
    updated = set(changes(dedup)) - set(queued)
    dedup.scan()
    fingerprint = dedup.database.tables.fingerprint
    with database.engine.connect() as connection:
        scanned = sorted(connection.execute(select(fingerprint.c.row_key)).scalars())
    assert len(scanned) == len(keys)
    assert queued == [(key, "I") for key in scanned]
    assert updated == {(key, "U") for key in scanned}
    assert queued_by(dedup, database, "DELETE FROM petitions") == [(key, "D") for key in scanned]


@pytest.mark.parametrize("name", quick_first(ODD_NAMES))
def test_any_name(database: Database, name: str) -> None:
    columns = [f"{name[:20]}k", name[:60], "old_key", "row_key"]
    key, body, *more = (Column(column, String(30)) for column in columns)
    table = Table(name, MetaData(), key, body, *more, PrimaryKeyConstraint(key, more[0]))
    table.create(database.engine)
    dedup = attached(database, name, columns={columns[1]: 1, "row_key": 1})
    with database.engine.begin() as connection:
        connection.execute(
            insert(table).values({columns[0]: "1", columns[1]: "a", "old_key": "%s", "row_key": "b"})
        )
        connection.execute(update(table).values({columns[1]: "b"}))
        connection.execute(update(table).values({"old_key": ":x"}))
        connection.execute(delete(table))
    before, after = '["1","%s"]', '["1",":x"]'
    assert changes(dedup) == sorted([(before, "I"), (before, "U"), (before, "D"), (after, "I"), (after, "D")])
    assert dedup.trigger_state().state == "intact"
    dedup.detach()
    with database.engine.begin() as connection:
        connection.execute(insert(table).values({columns[0]: "1", "old_key": "2"}))
    assert changes(dedup) == []


def test_tables_are_told_apart(database: Database) -> None:
    """By number, also where their names differ in nothing that the database sees, or are one table's."""
    first = petitions(database, THREE)
    run(database, "CREATE TABLE letters (id INTEGER NOT NULL PRIMARY KEY, body VARCHAR(200))")
    others = [
        attached(database, "Petitions", table="letters"),
        attached(database, "p" * 100, table="petitions", columns={"status": 1}),
        attached(database, "p" * 101, table="petitions", columns={"region": 1}),
    ]
    run(
        database,
        "UPDATE petitions SET body = 'z' WHERE id = 1",
        "INSERT INTO letters VALUES (5, 'a')",
        "UPDATE petitions SET status = 'z' WHERE id = 2",
        "UPDATE petitions SET region = 'z' WHERE id = 3",
    )
    assert [by_table(dedup) for dedup in (first, *others)] == [["1"], ["5"], ["2"], ["3"]]
    first.detach()
    assert [dedup.trigger_state().state for dedup in others] == ["intact"] * 3


def by_table(dedup: Deduplicator) -> list[str]:
    change, watched = dedup.database.tables.change, dedup.database.tables.watched_table
    query = select(change.c.row_key).join(watched, watched.c.id == change.c.table_id)
    with dedup.database.engine.connect() as connection:
        return list(connection.execute(query.where(watched.c.name == dedup.name)).scalars())


def test_a_key_that_is_too_long_does_not_stop_the_user(database: Database) -> None:
    kind = "TEXT" if database.name != "mariadb" else "VARCHAR(750)"
    run(database, f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body TEXT)")
    dedup = attached(database)
    fits, too_long = "信" * 700, "信" * 701
    insertion = "INSERT INTO petitions VALUES ('{}', 'a')"
    assert queued_by(dedup, database, insertion.format(fits)) == [(fits, "I")]
    assert queued_by(dedup, database, insertion.format(too_long)) == [(fits, "X")]
    assert queued_by(dedup, database, f"UPDATE petitions SET body = 'b' WHERE id = '{too_long}'") == [
        (fits, "X")
    ]
    assert queued_by(dedup, database, f"DELETE FROM petitions WHERE id = '{too_long}'") == [(fits, "X")]
    both = queued_by(dedup, database, f"UPDATE petitions SET id = '{too_long}'")
    assert both == [(fits, "D"), (fits, "X")]


def test_the_user_s_numbers_stay_the_user_s(database: Database) -> None:
    """What a session was told of its own insert is not replaced by one of ours."""
    number = {
        "sqlite": ("INTEGER PRIMARY KEY", "last_insert_rowid()"),
        "postgresql": ("SERIAL PRIMARY KEY", "lastval()"),
        "mariadb": ("INTEGER AUTO_INCREMENT PRIMARY KEY", "LAST_INSERT_ID()"),
    }
    kind, last = number[database.name]
    run(database, f"CREATE TABLE petitions (id {kind}, body TEXT)")
    dedup = attached(database)
    run(database, "INSERT INTO petitions (body) VALUES ('a')")
    with database.engine.begin() as connection:
        done = connection.execute(text("INSERT INTO petitions (body) VALUES ('b')"))
        assert connection.scalar(text(f"SELECT {last}")) == 2
        assert done.rowcount == 1
        assert connection.execute(text("UPDATE petitions SET body = 'c'")).rowcount == 2
        assert connection.scalar(text(f"SELECT {last}")) == 2
    assert changes(dedup) == [("1", "I"), ("1", "U"), ("2", "I"), ("2", "U")]


def test_names_that_mean_something_in_a_trigger(database: Database) -> None:
    """Reserved words and the names of our own columns are names like others."""
    table = Table(
        "order",
        MetaData(),
        Column("table_id", Integer, primary_key=True),
        Column("operation", Text),
        Column("NEW", Text),
    )
    table.create(database.engine)
    dedup = attached(database, "order", columns={"operation": 1, "NEW": 1})
    with database.engine.begin() as connection:
        connection.execute(insert(table).values(table_id=5, operation="a", NEW="b"))
        connection.execute(update(table).values(NEW="c"))
    assert changes(dedup) == [("5", "I"), ("5", "U")]
