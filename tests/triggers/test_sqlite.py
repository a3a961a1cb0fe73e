"""What SQLite does to rows in ways of its own, and what the triggers see of it."""

from __future__ import annotations

import sqlite3

import pytest

from db_dedup import Deduplicator
from db_dedup.errors import ConfigError, DatabaseError
from tests.dialects.tables import run
from tests.servers import Database
from tests.triggers.conftest import attached, changes, petitions, queued_by

INSERT = "INSERT INTO petitions VALUES (1, 'a', 'x', '1', 'new'), (2, 'b', 'x', '2', 'new')"


@pytest.fixture
def database(sqlite_database: Database) -> Database:
    return sqlite_database


def test_insert_or_replace(database: Database) -> None:
    """The row that is replaced goes without a trigger, and the one that comes has its key."""
    dedup = petitions(database, INSERT)
    assert queued_by(dedup, database, "INSERT OR REPLACE INTO petitions (id, body) VALUES (1, 'z')") == [
        ("1", "I")
    ]


def test_not_seen_replace_that_displaces_another_row(database: Database) -> None:
    """By a unique column that is not the key; a scan finds out."""
    dedup = petitions(database, INSERT, "CREATE UNIQUE INDEX one ON petitions (received)")
    replace = "INSERT OR REPLACE INTO petitions (id, received) VALUES (9, '2')"
    assert queued_by(dedup, database, replace) == [("9", "I")]
    assert dedup.scan().rows == 2


def test_with_recursive_triggers_it_is_seen(database: Database) -> None:
    dedup = petitions(database, INSERT, "CREATE UNIQUE INDEX one ON petitions (received)")
    with database.engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA recursive_triggers = ON")
        connection.exec_driver_sql("INSERT OR REPLACE INTO petitions (id, received) VALUES (9, '2')")
    assert changes(dedup) == [("2", "D"), ("9", "I")]


def test_upsert(database: Database) -> None:
    dedup = petitions(database, INSERT)
    rows = "petitions (id, body) VALUES (2, 'z'), (3, 'c')"
    upsert = f"INSERT INTO {rows} ON CONFLICT DO UPDATE SET body = excluded.body"
    assert queued_by(dedup, database, upsert) == [("2", "U"), ("3", "I")]
    assert queued_by(dedup, database, upsert) == []


def test_delete_without_a_condition(database: Database) -> None:
    """SQLite would otherwise empty the table at once."""
    dedup = petitions(database, INSERT)
    assert queued_by(dedup, database, "DELETE FROM petitions") == [("1", "D"), ("2", "D")]


def test_cascades(database: Database) -> None:
    run(
        database,
        "CREATE TABLE offices (name TEXT PRIMARY KEY)",
        "INSERT INTO offices VALUES ('x')",
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, office TEXT REFERENCES offices "
        "ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO petitions VALUES (1, 'x')",
    )
    dedup = attached(database, columns={"office": 1})
    with sqlite3.connect(str(database.engine.url.database)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("UPDATE offices SET name = 'y'")
        connection.execute("DELETE FROM offices")
    connection.close()
    assert changes(dedup) == [("1", "D"), ("1", "U")]


def test_a_key_set_as_rowid(database: Database) -> None:
    dedup = petitions(database, INSERT)
    assert queued_by(dedup, database, "UPDATE petitions SET rowid = 7 WHERE id = 1") == [
        ("1", "D"),
        ("7", "I"),
    ]


def test_a_generated_column(database: Database) -> None:
    run(database, "CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT, big TEXT AS (upper(name)))")
    dedup = attached(database, "names", columns={"big": 1})
    assert queued_by(dedup, database, "INSERT INTO names (id, name) VALUES (1, 'a')") == [("1", "I")]
    assert queued_by(dedup, database, "UPDATE names SET name = 'A'") == []
    assert queued_by(dedup, database, "UPDATE names SET name = 'b'") == [("1", "U")]


def test_a_row_without_a_key_is_not_queued(database: Database) -> None:
    run(database, "CREATE TABLE petitions (year INTEGER, no TEXT, body TEXT, PRIMARY KEY (year, no))")
    dedup = attached(database)
    assert queued_by(dedup, database, "INSERT INTO petitions VALUES (1, NULL, 'a'), (NULL, 'b', 'a')") == []
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'z' WHERE year = 1") == []
    assert queued_by(dedup, database, "UPDATE petitions SET no = 'c' WHERE year = 1") == [('["1","c"]', "I")]
    assert queued_by(dedup, database, "UPDATE petitions SET no = NULL WHERE year = 1") == [('["1","c"]', "D")]
    assert queued_by(dedup, database, "DELETE FROM petitions") == []


def test_keys_without_a_type(database: Database) -> None:
    """1 and 1.0 are equal, and as keys they are two texts."""
    run(
        database,
        "CREATE TABLE petitions (id PRIMARY KEY, body TEXT)",
        "INSERT INTO petitions VALUES (1, 'a')",
    )
    dedup = attached(database)
    assert queued_by(dedup, database, "UPDATE petitions SET id = 1.0") == [("1", "D"), ("1.0", "I")]
    assert queued_by(dedup, database, "UPDATE petitions SET id = x'00FF'") == [("1.0", "D"), ("x'00ff'", "I")]


def test_a_collation_that_other_programs_lack(database: Database) -> None:
    with sqlite3.connect(str(database.engine.url.database)) as connection:
        connection.create_collation("office", lambda a, b: (a > b) - (a < b))
        connection.execute("CREATE TABLE letters (id INTEGER PRIMARY KEY, body TEXT COLLATE office)")
        connection.execute("INSERT INTO letters VALUES (1, 'a')")
    connection.close()
    letters = attached(database, "letters")
    assert queued_by(letters, database, "UPDATE letters SET body = 'b' WHERE id = 1") == [("1", "U")]


def test_a_table_without_rowid(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID")
    dedup = attached(database)
    written = queued_by(
        dedup, database, "INSERT INTO petitions VALUES ('a', 'b')", "UPDATE petitions SET id = 'c'"
    )
    assert written == [("a", "D"), ("a", "I"), ("c", "I")]


def test_a_virtual_table_cannot_be_attached(database: Database) -> None:
    run(database, "CREATE VIRTUAL TABLE letters USING fts5(body)")
    dedup = Deduplicator(database.engine, "letters", {"body": 1}, key="body")
    dedup.upgrade()
    with pytest.raises(DatabaseError, match="virtual table"):
        dedup.attach()
    assert dedup.database.watched_names() == []


def test_a_table_of_an_attached_file(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body TEXT)")
    dedup = attached(database, schema="main")
    assert queued_by(dedup, database, "INSERT INTO petitions VALUES (1, 'a')") == [("1", "I")]
    other = Deduplicator(database.engine, "petitions", {"body": 1}, schema="temp")
    with pytest.raises((ConfigError, DatabaseError), match=r"another database|unknown table"):
        other.attach()


def test_a_column_that_counts_cannot_be_dropped_unnoticed(database: Database) -> None:
    petitions(database)
    with pytest.raises(Exception, match="no such column"):
        run(database, "ALTER TABLE petitions DROP COLUMN body")
    run(database, "ALTER TABLE petitions DROP COLUMN status")


def test_a_renamed_column_goes_on_being_seen(database: Database) -> None:
    dedup = petitions(database, INSERT)
    run(database, "ALTER TABLE petitions RENAME COLUMN body TO content")
    assert queued_by(dedup, database, "UPDATE petitions SET content = 'z' WHERE id = 1") == [("1", "U")]


def test_nocase(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id TEXT PRIMARY KEY COLLATE NOCASE, body TEXT COLLATE NOCASE)")
    dedup = attached(database)
    run(database, "INSERT INTO petitions VALUES ('a', 'a')")
    assert queued_by(dedup, database, "UPDATE petitions SET body = 'A'") == [("a", "U")]
    assert queued_by(dedup, database, "UPDATE petitions SET id = 'A'") == [("A", "I"), ("a", "D")]
