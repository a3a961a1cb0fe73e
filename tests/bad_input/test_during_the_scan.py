"""What happens to the user's table, and to the connection, while a scan is at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import OperationalError

from db_dedup import Deduplicator
from db_dedup.errors import DatabaseError, DatabaseUnavailableError
from tests.bad_input.conftest import NEAR, OTHER, SAME, Watcher, outcome, refusal
from tests.cli.conftest import rows, view
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.scan.conftest import answer
from tests.servers import Database

pytestmark = pytest.mark.usefixtures("small_pages")

ROWS = 60
BODIES = (SAME, OTHER, SAME, NEAR, "第{i}号来信说的是别的事情，路灯坏了{i}盏，请来人修理。")


@pytest.fixture
def letters(database: Database) -> Database:
    """Sixty rows in a table that a test may change under the scan."""
    make(
        database,
        "CREATE TABLE petitions "
        "(id INTEGER PRIMARY KEY, title VARCHAR(100), body VARCHAR(200), note VARCHAR(20))",
    )
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, '标题', :body, NULL)",
        [{"id": 10 * i, "body": BODIES[i % len(BODIES)].format(i=i)} for i in range(ROWS)],
    )
    return database


def watched(
    database: Database, progress: Watcher | None = None, engine: Engine | None = None
) -> Deduplicator:
    columns = {"title": {"kind": "value", "weight": 1}, "body": 1}
    dedup = Deduplicator(engine or database.engine, "petitions", columns, progress)
    dedup.upgrade()
    return dedup


def elsewhere(database: Database, *statements: str) -> Callable[[], None]:
    """Somebody else at work; in PostgreSQL and MariaDB they do not wait for a scan's snapshot."""

    def act() -> None:
        engine = create_engine(database.url, poolclass=NullPool)
        with engine.begin() as connection:
            if database.name == "postgresql":
                connection.execute(text("SET lock_timeout = 100"))
            if database.name == "mariadb":
                connection.execute(text("SET lock_wait_timeout = 1"))
            for statement in statements:
                connection.execute(text(statement))

    return act


def rescan(database: Database) -> tuple[Any, Any, Any]:
    """What a fresh scan says."""
    dedup = watched(database)
    dedup.scan()
    return answer(dedup)


CHANGES = {
    "INSERT INTO petitions VALUES (5, 'x', 'new', NULL), (995, 'x', 'new', NULL)": True,
    "DELETE FROM petitions WHERE id > 300 OR id < 100": False,
    f"UPDATE petitions SET body = '{OTHER}' WHERE id > 200 OR id < 100": True,
    f"UPDATE petitions SET body = '{SAME}' WHERE id > 200 OR id < 100": False,
    "UPDATE petitions SET id = id + 5 WHERE id > 200 OR id < 100": False,
    "DELETE FROM petitions": True,
}
"""What somebody does, and whether it is in the first scan."""


@pytest.mark.parametrize(("change", "is_first"), CHANGES.items())
def test_rows_change_between_two_pages(letters: Database, change: str, is_first: bool) -> None:
    """The scan ends well; the next one gives what a fresh scan gives."""
    if not is_first:
        watched(letters).scan()
    watcher = Watcher(elsewhere(letters, change), after=20)
    dedup = watched(letters, watcher)
    report = dedup.scan()
    assert watcher.has_acted
    if letters.name != "sqlite" and is_first:
        assert report.rows == ROWS  # a snapshot; a rescan reads some rows once more, later
    for pair in dedup.pairs():
        assert pair.key_a != pair.key_b
    after = rescan(letters)
    watched(letters).database.uninstall()
    assert rescan(letters) == after


GONE = {
    "a watched column is dropped": ["ALTER TABLE petitions DROP COLUMN title"],
    "a watched column is renamed": ["ALTER TABLE petitions RENAME COLUMN body TO content"],
    "the table is renamed": ["ALTER TABLE petitions RENAME TO letters"],
    "the table is dropped": ["DROP TABLE petitions"],
}


@pytest.mark.parametrize("change", GONE)
@pytest.mark.parametrize("is_first", [True, False])
def test_the_table_changes_between_two_pages(sqlite_database: Database, change: str, is_first: bool) -> None:
    """Only SQLite allows it: it reads each page in a transaction of its own."""
    letters = _letters_in(sqlite_database)
    told = None
    if not is_first:
        dedup = watched(letters)
        dedup.scan()
        told = answer(dedup)
        make(
            letters, f"DROP VIEW {view(letters, 'duplicates_of_petitions')}"
        )  # else SQLite lets nothing be renamed
    watcher = Watcher(elsewhere(letters, *GONE[change]), after=20)
    dedup = watched(letters, watcher)
    line = refusal(dedup.scan, DatabaseError)
    assert watcher.has_acted
    assert any(name in line for name in ("petitions", "title", "body"))
    assert "烧烤" not in line
    stored = Deduplicator(letters.engine, "petitions")
    if told:
        assert answer(stored) == told
    else:
        assert "db-dedup scan" in refusal(stored.groups)
    assert stored.database.status()[0].last_scan_state == "failed"


def _letters_in(database: Database) -> Database:
    make(database, "CREATE TABLE petitions (id INTEGER PRIMARY KEY, title VARCHAR(100), body VARCHAR(200))")
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, '标题', :body)",
        [{"id": i, "body": BODIES[i % len(BODIES)].format(i=i)} for i in range(ROWS)],
    )
    return database


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "mysql"])
def test_a_table_that_is_being_read_cannot_be_dropped(name: str, request: pytest.FixtureRequest) -> None:
    """The server makes whoever wants to wait until the scan has read it."""
    letters = _letters_in(request.getfixturevalue(f"{name}_database"))
    refused: list[Exception] = []

    def drop() -> None:
        try:
            elsewhere(letters, "DROP TABLE petitions")()
        except OperationalError as error:
            refused.append(error)

    watcher = Watcher(drop, after=20)
    assert watched(letters, watcher).scan().rows == ROWS
    assert watcher.has_acted
    assert len(refused) == 1


@pytest.mark.parametrize("change", ["a watched column is dropped", "the table is dropped"])
@pytest.mark.parametrize("step", ["pairs", "writing the answer"])
def test_the_table_changes_after_it_was_read(letters: Database, change: str, step: str) -> None:
    """The fingerprints are there; what cannot be made any more is the view of the rows."""
    watcher = Watcher(elsewhere(letters, *GONE[change]), step=step)
    dedup = watched(letters, watcher)
    error = outcome(dedup.scan)
    assert watcher.has_acted
    assert error is None or any(name in str(error) for name in ("petitions", "title"))
    assert "烧烤" not in str(error)


TERMINATE_OTHERS = text("""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
""")
OTHERS_OF_MARIADB = text("""
    SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()
""")


def kill_all(database: Database) -> Callable[[], None]:
    """The server ends every session of this database but the one that asks."""

    def act() -> None:
        engine = create_engine(database.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            if database.name == "postgresql":
                connection.execute(TERMINATE_OTHERS)
            else:
                for (thread,) in connection.execute(OTHERS_OF_MARIADB).all():
                    connection.execute(text(f"KILL {int(thread)}"))
        database.engine.dispose()  # a user's own engine does not ask whether its connections live

    return act


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "mysql"])
@pytest.mark.parametrize(
    ("step", "after", "is_first"),
    [("fingerprints", 0, True), ("fingerprints", 20, True), ("fingerprints", 20, False), ("pairs", 0, False)],
)
def test_the_server_ends_the_connection(
    name: str, step: str, after: int, is_first: bool, request: pytest.FixtureRequest
) -> None:
    """While it reads or writes, the scan ends in one line and may be tried again; else it goes on."""
    letters = _letters_in(request.getfixturevalue(f"{name}_database"))
    told = None
    if not is_first:
        dedup = watched(letters)
        dedup.scan()
        told = answer(dedup)
    watcher = Watcher(kill_all(letters), step=step, after=after)
    engine = Deduplicator(letters.url, "petitions").database.engine
    error = outcome(watched(letters, watcher, engine).scan)
    assert watcher.has_acted
    assert error is None or isinstance(error, DatabaseUnavailableError)
    assert "烧烤" not in str(error)
    if step == "fingerprints" and after:
        assert error is not None
    stored = Deduplicator(letters.engine, "petitions")
    if told:
        assert answer(stored) == told
    final = rescan(letters)
    assert final[1]
    if told:
        assert final == told
    engine.dispose()


@pytest.mark.parametrize("name", ["postgresql", "mariadb", "mysql"])
def test_the_server_ends_the_connection_in_the_middle_of_the_switch(
    name: str, request: pytest.FixtureRequest
) -> None:
    """The switch is one transaction: all of it or nothing."""
    letters = _letters_in(request.getfixturevalue(f"{name}_database"))
    dedup = watched(letters)
    dedup.scan()
    told = answer(dedup)
    make(letters, f"UPDATE petitions SET body = '{OTHER}' WHERE id < 30")
    engine = Deduplicator(letters.url, "petitions").database.engine
    killed: list[str] = []

    def kill_before(connection: Any, cursor: Any, statement: str, *_: Any) -> None:  # noqa: ARG001
        if "definition" in statement and statement.startswith("UPDATE") and not killed:
            killed.append(statement)
            kill_all(letters)()

    event.listen(engine, "before_cursor_execute", kill_before)
    line = refusal(watched(letters, engine=engine).scan, DatabaseUnavailableError)
    assert killed
    assert "烧烤" not in line
    assert answer(Deduplicator(letters.engine, "petitions")) == told
    after = rescan(letters)
    assert after != told
    assert rows(letters.engine, "SELECT count(*) FROM petitions") == [(ROWS,)]
    engine.dispose()
