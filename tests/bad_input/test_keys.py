"""Row keys as odd as a database takes them: each is kept exactly, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import create_engine, text

from db_dedup import Deduplicator
from db_dedup.errors import RowKeyError, UnknownNameError
from tests.bad_input.conftest import NEAR, OTHER, SAME, refusal, stored_rows, unharmed, watch
from tests.cli.conftest import fail, rows, succeed, view
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

KEY_TYPES = {
    "sqlite": "TEXT",
    "postgresql": "TEXT",
    "mariadb": "VARCHAR(760) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    "mysql": "VARCHAR(760) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
}
ODD_KEYS = [
    *("a\nb", "a\r\nb", "\t", "it's", 'say "it"', "back\\slash", "back`tick", "a", "A", "a ", " a", ""),
    *("ä", "a\u0308", "%s", ":name", "100%", "[1]", '["a"]', "null", "😀", "\u202eright to left"),
    *("zero\u200bwidth", "\ufeffmark", "\ufffd", "\x01", "\x7f", "𠮷" * 700),
]


def make_petitions(database: Database) -> None:
    kind = KEY_TYPES[database.engine.dialect.name]
    make(database, f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body VARCHAR(200))")


def insert(database: Database, keys: list[str], body: str = SAME) -> None:
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": key, "body": body} for key in keys])


def assert_all_are_copies(database: Database, dedup: Deduplicator, keys: list[str]) -> None:
    """One group of all rows, in our tables, in the view of the user's rows, and to a check."""
    assert dedup.scan().copies == len(keys) - 1
    [group] = dedup.groups()
    assert sorted(dedup.members(group.group_id)) == sorted(keys)
    own = rows(database.engine, f"SELECT id FROM {view(database, 'duplicates_of_petitions')}")
    assert sorted(key for (key,) in own) == sorted(keys)
    assert sorted(match.row_key for match in dedup.check({"body": SAME})) == sorted(keys)
    assert sorted(match.row_key for match in dedup.check({"body": NEAR})) == sorted(keys)
    assert len(list(dedup.pairs(expand=True))) == len(keys) * (len(keys) - 1) // 2


@pytest.mark.usefixtures("small_pages")
def test_odd_keys_are_kept_as_they_are(database: Database) -> None:
    make_petitions(database)
    insert(database, ODD_KEYS)
    dedup = watch(database)
    assert_all_are_copies(database, dedup, ODD_KEYS)
    assert_all_are_copies(database, dedup, ODD_KEYS)  # the second scan finds every row again


@pytest.mark.parametrize("kind", ["sqlite_database", "mariadb_database", "mysql_database"])
@pytest.mark.parametrize("key", ["\0", "a\0", "a\0b"])
def test_a_key_with_a_nul_is_refused(kind: str, key: str, request: pytest.FixtureRequest) -> None:
    """PostgreSQL has no such texts, and SQLite's JSON functions end them too early."""
    database: Database = request.getfixturevalue(kind)
    make_petitions(database)
    insert(database, ["a", "b"])
    dedup = watch(database)
    dedup.scan()
    insert(database, [key])
    with unharmed(database, dedup):
        assert "holds a NUL character" in refusal(dedup.scan, RowKeyError)


@pytest.mark.usefixtures("small_pages")
def test_odd_keys_of_two_columns(database: Database) -> None:
    kind = KEY_TYPES[database.engine.dialect.name].replace("760", "60")
    make(
        database,
        f"CREATE TABLE petitions (office {kind} NOT NULL, id {kind} NOT NULL, body VARCHAR(200), "
        "PRIMARY KEY (office, id))",
    )
    odd = [key for key in ODD_KEYS if len(key) < 60]
    keys = [(a, b) for a in odd[:6] for b in odd]
    fill(
        database,
        "INSERT INTO petitions VALUES (:office, :id, :body)",
        [{"office": a, "id": b, "body": SAME} for a, b in keys],
    )
    dedup = watch(database)
    assert dedup.scan().copies == len(keys) - 1
    own = rows(database.engine, f"SELECT office, id FROM {view(database, 'duplicates_of_petitions')}")
    assert sorted(own) == sorted(keys)
    assert len(dedup.check({"body": NEAR})) == len(keys)


def test_a_key_of_700_characters_and_one_of_701(database: Database) -> None:
    make_petitions(database)
    insert(database, ["键" * 700, "x" * 700])
    dedup = watch(database)
    assert dedup.scan().copies == 1
    insert(database, ["机密" + "x" * 699])
    with unharmed(database, dedup):
        line = refusal(dedup.scan, RowKeyError)
    assert "701 characters, more than the 700" in line
    fill(database, "DELETE FROM petitions WHERE id LIKE :id", [{"id": "机密%"}])
    assert dedup.scan().copies == 1


def test_keys_that_differ_in_case_and_blanks_alone(database: Database) -> None:
    """What the user's own collation takes for one key cannot be there twice, what it tells apart can."""
    make_petitions(database)
    keys = ["Key", "key", "KEY", "key ", "key  "]
    insert(database, keys)
    assert_all_are_copies(database, watch(database), keys)


BROKEN_KEYS = [
    "x'80'",
    "x'ff'",
    "x'c3'",
    "x'efbfbd'",
    "x'ed a0 80'".replace(" ", ""),
    "x'41ff42'",
    "x'41fe42'",
]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(
    ("broken", "journal"), [*((key, "delete") for key in BROKEN_KEYS), ("x'80'", "wal"), ("x'ff'", "wal")]
)
def test_a_key_that_is_no_utf_8_is_refused(sqlite_database: Database, broken: str, journal: str) -> None:
    """Whether it comes first, last or in the middle: no page is read twice, none is skipped."""
    make_petitions(sqlite_database)
    with sqlite_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"PRAGMA journal_mode = {journal}"))
    insert(sqlite_database, [f"a{i}" for i in range(25)])
    insert(sqlite_database, [f"\U0010fffd{i}" for i in range(25)])
    dedup = Deduplicator(sqlite_database.url, "petitions", {"body": 1})
    dedup.upgrade()
    assert dedup.scan().copies == 49
    make(sqlite_database, f"INSERT INTO petitions VALUES (CAST({broken} AS TEXT), '{OTHER}')")
    if broken == "x'efbfbd'":  # the replacement character itself is as good as any
        assert dedup.scan().rows == 51
    else:
        line = refusal(dedup.scan, RowKeyError)
        assert "no valid UTF-8" in line
        assert OTHER not in line
    assert dedup.groups()[0].size == 50
    dedup.database.close()


@pytest.mark.usefixtures("small_pages")
def test_two_broken_keys_do_not_pass_for_one(sqlite_database: Database) -> None:
    make_petitions(sqlite_database)
    make(
        sqlite_database,
        *(f"INSERT INTO petitions VALUES (CAST({key} AS TEXT), '{SAME}')" for key in BROKEN_KEYS),
    )
    dedup = watch(sqlite_database, where="id = char(65533)")
    assert dedup.scan().rows == 1
    assert "no valid UTF-8" in refusal(watch(sqlite_database).scan, RowKeyError)


def test_a_composite_key_that_is_no_utf_8(sqlite_database: Database) -> None:
    make(
        sqlite_database,
        "CREATE TABLE petitions (office TEXT, id INTEGER, body TEXT, PRIMARY KEY (office, id))",
        f"INSERT INTO petitions VALUES (CAST(x'41ff' AS TEXT), 1, '{SAME}')",
    )
    assert "no valid UTF-8" in refusal(watch(sqlite_database).scan, RowKeyError)


def test_an_engine_of_the_users_own_reads_broken_text_too(sqlite_database: Database) -> None:
    make_petitions(sqlite_database)
    insert(sqlite_database, ["1", "2"])
    make(
        sqlite_database,
        f"INSERT INTO petitions VALUES ('3', CAST(x'ff' || CAST('{SAME}' AS BLOB) || x'fe' AS TEXT))",
    )
    plain = create_engine(sqlite_database.url)
    dedup = Deduplicator(plain, "petitions", {"body": 1})
    dedup.upgrade()
    assert dedup.scan().grouped_rows == 3
    with plain.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        assert raw.text_factory is str
    plain.dispose()


def test_a_key_that_is_not_unique(database: Database) -> None:
    make(database, "CREATE TABLE petitions (id INTEGER, body VARCHAR(200))")
    for body in (SAME, NEAR, OTHER):
        fill(database, "INSERT INTO petitions VALUES (1, :body)", [{"body": body}])
    dedup = watch(database, key="id")
    before = stored_rows(database.engine)
    for _ in range(2):
        line = refusal(dedup.scan, RowKeyError)
        assert "two rows have the same key '1'" in line
        assert "烧烤" not in line
    assert stored_rows(database.engine) == before
    fill(database, "DELETE FROM petitions WHERE body <> :body", [{"body": SAME}])
    assert dedup.scan().rows == 1
    fill(database, "INSERT INTO petitions VALUES (1, :body)", [{"body": NEAR}])
    assert "two rows have the same key '1'" in refusal(dedup.scan, RowKeyError)


@pytest.mark.usefixtures("small_pages")
def test_a_key_that_is_not_unique_across_pages(database: Database) -> None:
    make(database, "CREATE TABLE petitions (id INTEGER, body VARCHAR(200))")
    body = {"body": OTHER}
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": i % 40, **body} for i in range(55)])
    dedup = watch(database, key="id")
    for _ in range(2):
        assert "two rows have the same key" in refusal(dedup.scan, RowKeyError)


def test_no_key_at_all(petitions: Database) -> None:
    make(petitions, "CREATE TABLE letters (title VARCHAR(50), body VARCHAR(200))")
    dedup = Deduplicator(petitions.engine, "letters", {"body": 1})
    dedup.upgrade()
    line = refusal(dedup.scan)
    assert "'letters' has no primary key" in line
    assert "key = [" in line
    nearest = refusal(
        Deduplicator(petitions.engine, "letters", {"body": 1}, key="titel").scan, UnknownNameError
    )
    assert "did you mean title" in nearest
    error = fail("init", "--table", "letters", "--config", "x.toml", "--url", petitions.url)
    assert "'letters' has no primary key" in str(error)


def test_a_float_is_no_key(petitions: Database) -> None:
    kind = {"sqlite": "REAL", "postgresql": "DOUBLE PRECISION", "mariadb": "DOUBLE"}[petitions.name]
    make(petitions, f"CREATE TABLE letters (id {kind} NOT NULL PRIMARY KEY, body VARCHAR(200))")
    dedup = Deduplicator(petitions.engine, "letters", {"body": 1})
    dedup.upgrade()
    assert "cannot be a key" in refusal(dedup.scan)


def test_the_command_line_prints_odd_keys(database: Database) -> None:
    make_petitions(database)
    keys = [key for key in ODD_KEYS if key.isprintable() and key]
    insert(database, keys)
    watch(database).scan()
    data = succeed("pairs", "petitions", "--url", database.url, "--format", "json").json()
    assert len(data) == len(keys) - 1
    assert {row["key_a"] for row in data} | {row["key_b"] for row in data} == set(keys)
    lines = succeed("pairs", "petitions", "--url", database.url, "--format", "csv").stdout.splitlines()
    assert len(lines) == len(keys)
    succeed("pairs", "petitions", "--url", database.url)
