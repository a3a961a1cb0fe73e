"""Keys that a database takes for equal, or that no plain text brings back: no row is lost or mistaken."""

from __future__ import annotations

from uuid import UUID

import pytest

from db_dedup import Deduplicator
from db_dedup.errors import RowKeyError
from tests.bad_input.conftest import NEAR, OTHER, SAME, refusal, watch
from tests.cli.conftest import rows, view
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

COUNT = 6
SQLITE_DECLARED = ["UUID", "CHAR(16)", "TEXT", "BLOB", "BINARY(16)", "VARBINARY(16)", "NUMERIC", ""]
UUIDS = [UUID(int=0xABC << 100 | number << 60).bytes for number in range(COUNT)]
SQLITE_FLOATS = [0.5, 0.1, 1 / 3, 1e300, 123456789.123456, 1.5e-7]


def assert_every_scan_finds(database: Database, dedup: Deduplicator, count: int) -> None:
    """Rows that are neither lost nor mistaken: by the first scan, by the next, and in the user's own view."""
    for _ in range(2):
        assert dedup.scan().rows == count
        [group] = dedup.groups()
        assert group.size == count
    assert dedup.verify().is_right
    [[shown]] = rows(database.engine, f"SELECT count(*) FROM {view(database, 'duplicates_of_petitions')}")
    assert shown == count
    assert len(dedup.check({"body": NEAR})) == count
    keys = [match.row_key for match in dedup.check({"body": SAME})]
    assert len(dedup.texts().read(keys)) == count


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("declared", SQLITE_DECLARED)
@pytest.mark.parametrize("option", ["PRIMARY KEY", "NOT NULL"])
def test_sixteen_bytes(sqlite_database: Database, declared: str, option: str) -> None:
    make(sqlite_database, f"CREATE TABLE petitions (id {declared} {option}, body TEXT)")
    texts = [SAME if number % 2 else NEAR for number in range(COUNT)]
    values = [{"id": key, "body": body} for key, body in zip(UUIDS, texts, strict=True)]
    fill(sqlite_database, "INSERT INTO petitions VALUES (:id, :body)", values)
    assert_every_scan_finds(sqlite_database, watch(sqlite_database, key="id"), COUNT)


@pytest.mark.parametrize("declared", ["", "DECIMAL(20,10)", "NUMERIC"])
def test_floats(sqlite_database: Database, declared: str) -> None:
    make(sqlite_database, f"CREATE TABLE petitions (id {declared} PRIMARY KEY, body TEXT)")
    texts = [SAME if number % 2 else NEAR for number in range(COUNT)]
    values = [{"id": key, "body": body} for key, body in zip(SQLITE_FLOATS, texts, strict=True)]
    fill(sqlite_database, "INSERT INTO petitions VALUES (:id, :body)", values)
    assert_every_scan_finds(sqlite_database, watch(sqlite_database), COUNT)


def test_every_storage_class_in_one_column(sqlite_database: Database) -> None:
    """The same characters as a number, a text and a blob are different keys."""
    make(sqlite_database, "CREATE TABLE petitions (id PRIMARY KEY, body TEXT)")
    keys = [
        "10",
        "'10'",
        "x'3130'",
        "'x''3130'''",
        "1.5",
        "'1.5'",
        "'616263'",
        "x'616263'",
        "'abc'",
        "''",
        "x''",
    ]
    keys += ["'n''10'''", "'t''10'''", "9223372036854775807", "'9223372036854775807'", "9223372036854775808"]
    for number, key in enumerate(keys):
        make(sqlite_database, f"INSERT INTO petitions VALUES ({key}, '{NEAR if number % 2 else SAME}')")
    assert_every_scan_finds(sqlite_database, watch(sqlite_database), len(keys))


@pytest.mark.parametrize("attached", [False, True])
def test_a_key_that_does_not_match_itself_is_refused(sqlite_database: Database, attached: bool) -> None:
    """Nothing is lost: the scan says so, and the worker parks the change."""
    make(sqlite_database, "CREATE TABLE petitions (id DECIMAL(10,2) PRIMARY KEY, body TEXT)")
    fill(sqlite_database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": 1, "body": SAME}])
    dedup = watch(sqlite_database)
    dedup.scan()
    if attached:
        dedup.attach()
        dedup.scan()
    make(sqlite_database, f"INSERT INTO petitions VALUES (9e999, '{SAME}')")
    if attached:
        while dedup.worker().step():
            pass
        [dead] = dedup.database.status()[0].latest_dead
        assert "column 'id' (" in (dead.error or "")
    line = refusal(dedup.scan, RowKeyError)
    assert "'Inf'" in line
    assert "column 'id' (" in line


COLLATED = {
    "sqlite": ("TEXT COLLATE NOCASE", ""),
    "postgresql": (
        'text COLLATE "any_case"',
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    ),
    "mariadb": ("VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", ""),
}


def make_collated(database: Database, key: str) -> None:
    kind, before = COLLATED[database.name]
    make(
        database,
        *([before] if before else []),
        f"CREATE TABLE petitions (id {kind} NOT NULL {key}, body VARCHAR(200))",
    )


@pytest.mark.usefixtures("small_pages")
def test_keys_equal_under_the_collation(database: Database) -> None:
    make_collated(database, "")
    keys = [f"{key}{number}" for number in range(8) for key in ("abc", "ABC", "aBc")]
    texts = [SAME if number % 2 else NEAR for number in range(len(keys))]
    values = [{"id": key, "body": body} for key, body in zip(keys, texts, strict=True)]
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", values)
    assert_every_scan_finds(database, watch(database, key="id"), len(keys))


def test_a_key_that_changed_its_case(database: Database) -> None:
    make_collated(database, "PRIMARY KEY")
    values = [{"id": "abc", "body": SAME}, {"id": "d", "body": OTHER}]
    fill(database, "INSERT INTO petitions VALUES (:id, :body)", values)
    dedup = watch(database)
    dedup.scan()
    make(database, "UPDATE petitions SET id = 'ABC' WHERE id = 'abc'")
    assert dedup.check({"body": NEAR}) == []
    assert dedup.scan().rows == 2
    assert [match.row_key for match in dedup.check({"body": NEAR})] == ["ABC"]
