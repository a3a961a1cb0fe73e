"""Every fault of a database is one clear line, without what rows say and without passwords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    DedupError,
    DiskFullError,
    ReadOnlyDatabaseError,
    StatementEndedError,
    TooMuchAtOnceError,
)
from tests.dialects.tables import run
from tests.servers import Database
from tests.thorough import MYSQL


def fault(engine: Engine, *statements: str) -> DedupError:
    """What becomes of the error of the last statement."""
    with pytest.raises(SQLAlchemyError) as caught:
        run_all(engine, statements)
    found = dialect_for(engine).translate_error(caught.value)
    assert "\n" not in str(found)
    return found


def run_all(engine: Engine, statements: Iterable[str]) -> None:
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))


def fault_of_opening(url: str) -> DedupError:
    engine = open_engine(url)
    try:
        return fault(engine, "SELECT 1")
    finally:
        engine.dispose()


def test_missing_table(database: Database) -> None:
    found = fault(database.engine, "SELECT * FROM petitions")
    assert type(found) is DatabaseError
    assert "petitions" in str(found)


def test_missing_column(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER)")
    assert "title" in str(fault(database.engine, "SELECT title FROM petitions"))


def test_values_stay_hidden(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (id INTEGER, name VARCHAR(20) UNIQUE)",
        "INSERT INTO petitions VALUES (1, '王秀兰')",
    )
    found = fault(database.engine, "INSERT INTO petitions VALUES (2, '王秀兰')")
    assert type(found) is DatabaseError
    assert "王秀兰" not in str(found)


def test_value_that_a_cast_refuses_stays_hidden(postgresql_database: Database) -> None:
    found = fault(postgresql_database.engine, "SELECT CAST('王秀兰' AS integer)")
    assert "王秀兰" not in str(found)
    assert "22P02" in str(found)


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_no_server(scheme: str) -> None:
    found = fault_of_opening(f"{scheme}://someone:secret@127.0.0.1:1/x")
    assert type(found) is DatabaseUnavailableError
    assert found.is_transient
    assert "cannot connect" in str(found)
    assert "secret" not in str(found)


@pytest.mark.parametrize("database", ["postgresql", "mariadb", MYSQL], indirect=True)
def test_no_such_database(database: Database) -> None:
    url = make_url(database.url).set(database="no_such_database")
    found = fault_of_opening(url.render_as_string(hide_password=False))
    assert type(found) is DatabaseError
    assert "no_such_database" in str(found)


@pytest.mark.parametrize("database", [MYSQL], indirect=True)
def test_a_deadlock_of_named_locks(database: Database) -> None:
    """Of the two sessions that wait for each other MySQL ends one; MariaDB lets both wait."""
    take = "SELECT get_lock('{}', 20)"
    engine = open_engine(database.url)
    with engine.connect() as one, engine.connect() as other, ThreadPoolExecutor(1) as pool:
        one.execute(text(take.format("a")))
        other.execute(text(take.format("b")))
        waiting = pool.submit(one.execute, text(take.format("b")))
        error: DBAPIError | None = None
        try:
            other.execute(text(take.format("a")))
            waiting.result()
        except DBAPIError as of_either:
            error = of_either
        other.invalidate()  # its locks are free then, and the first session goes on
    engine.dispose()
    assert error is not None
    found = dialect_for(database.engine).translate_error(error)
    assert type(found) is DatabaseUnavailableError
    assert str(found).startswith("deadlock")


@pytest.mark.parametrize("statement", ["ALTER TABLE t ADD b INTEGER, ALGORITHM=COPY", "TRUNCATE t"])
def test_a_table_that_is_altered_beside_a_snapshot(mariadb_or_mysql: Database, statement: str) -> None:
    run(mariadb_or_mysql, "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
    dialect = dialect_for(mariadb_or_mysql.engine)
    with dialect.read_snapshot(mariadb_or_mysql.engine) as connection:
        run(mariadb_or_mysql, statement)
        with pytest.raises(DBAPIError) as caught:
            connection.execute(text("SELECT a FROM t"))
    found = dialect.translate_error(caught.value)
    assert type(found) is DatabaseUnavailableError
    assert "altered or truncated" in str(found)


def _without_rights(database: Database, grants: list[str]) -> str:
    """The URL of a new user who may do no more than `grants`."""
    run(database, *grants)
    return with_password(database.url, "secret")


def with_password(url: str, password: str) -> str:
    clerk = make_url(url).set(username="clerk", password=password)
    return clerk.render_as_string(hide_password=False)


def test_postgresql_without_rights(postgresql_database: Database) -> None:
    run(postgresql_database, "CREATE TABLE petitions (id INTEGER)")
    url = _without_rights(postgresql_database, ["CREATE ROLE clerk LOGIN PASSWORD 'secret'"])
    engine = open_engine(url)
    found = fault(engine, "SELECT * FROM petitions")
    engine.dispose()
    run(postgresql_database, "DROP ROLE clerk")
    needed = "(needed: GRANT SELECT ON petitions)"
    assert str(found) == f"no right: permission denied for table petitions {needed}"


def test_mariadb_without_rights(mariadb_or_mysql: Database) -> None:
    name = make_url(mariadb_or_mysql.url).database
    run(mariadb_or_mysql, "CREATE TABLE petitions (id INTEGER)")
    url = _without_rights(
        mariadb_or_mysql,
        [
            "DROP USER IF EXISTS clerk@'%'",
            "CREATE USER clerk@'%' IDENTIFIED BY 'secret'",
            f"GRANT CREATE ON {name}.* TO clerk@'%'",
        ],
    )
    engine = open_engine(url)
    found = fault(engine, "SELECT * FROM petitions")
    refused = fault_of_opening(with_password(url, "guess"))
    engine.dispose()
    run(mariadb_or_mysql, "DROP USER clerk@'%'")
    assert str(found).startswith("no right: SELECT command denied to user 'clerk'")
    table = rf"(`{name}`\.`petitions`|petitions)"  # MySQL leaves the database out
    assert re.search(rf"\(needed: GRANT SELECT ON {table} TO 'clerk'@", str(found))
    assert type(refused) is DatabaseError
    assert "user and password" in str(refused)
    assert "guess" not in str(refused)


def test_more_locks_than_the_server_has(postgresql_database: Database) -> None:
    """As for a table of thousands of partitions; to take them all would fail other tests."""
    hint = "You might need to increase max_locks_per_transaction."
    refusal = f"""DO $$ BEGIN
        RAISE 'out of shared memory' USING ERRCODE = 'out_of_memory', HINT = '{hint}';
    END $$"""
    found = fault(postgresql_database.engine, refusal)
    assert type(found) is TooMuchAtOnceError
    assert str(found) == f"the server has too little memory: out of shared memory ({hint})"


def test_lock_that_is_not_free(postgresql_database: Database) -> None:
    run(postgresql_database, "CREATE TABLE petitions (id INTEGER)")
    assert_locked(
        postgresql_database.engine, "LOCK TABLE petitions", "SET lock_timeout = 50", "SELECT * FROM petitions"
    )


def test_row_that_is_locked(mariadb_or_mysql: Database) -> None:
    run(
        mariadb_or_mysql,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY)",
        "INSERT INTO petitions VALUES (1)",
    )
    lock = "SELECT * FROM petitions WHERE id = 1 FOR UPDATE"
    assert_locked(mariadb_or_mysql.engine, lock, "SET innodb_lock_wait_timeout = 1", lock)


@pytest.mark.parametrize(
    ("database", "limit", "endless"),
    [
        ("postgresql", "statement_timeout = '50ms'", "SELECT pg_sleep(3600)"),
        ("mariadb", "max_statement_time = 0.05", "SELECT SLEEP(3600)"),
        pytest.param(
            "mysql",
            "max_execution_time = 50",
            "SELECT COUNT(*) FROM " + ", ".join(f"information_schema.columns AS c{i}" for i in range(9)),
            marks=pytest.mark.thorough,
        ),
    ],
    indirect=["database"],
)
def test_statement_that_takes_longer_than_the_server_allows(
    database: Database, limit: str, endless: str
) -> None:
    found = fault(database.engine, f"SET SESSION {limit}", endless)
    assert type(found) is StatementEndedError
    assert limit.partition(" ")[0] in str(found)


def test_sqlite_file_that_is_locked(sqlite_database: Database) -> None:
    run(sqlite_database, "CREATE TABLE petitions (id INTEGER)")
    assert_locked(
        sqlite_database.engine, "BEGIN EXCLUSIVE", "PRAGMA busy_timeout = 10", "SELECT * FROM petitions"
    )


def assert_locked(engine: Engine, lock: str, *statements: str) -> None:
    with engine.connect() as holder:
        holder.execute(text(lock))
        found = fault(engine, *statements)
    assert type(found) is DatabaseUnavailableError
    assert "lock" in str(found)


def test_a_session_that_another_client_uses_too(postgresql_database: Database) -> None:
    found = fault(postgresql_database.engine, "EXECUTE prepared_elsewhere")
    assert type(found) is DatabaseError
    assert "pool in session mode" in str(found)


def test_a_binary_log_of_statements(mariadb_or_mysql: Database) -> None:
    refusal = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1665, MESSAGE_TEXT = 'impossible to write'"
    found = fault(mariadb_or_mysql.engine, refusal)
    assert type(found) is DatabaseError
    assert "binlog_format = ROW" in str(found)


def test_a_server_with_small_pages(mariadb_or_mysql: Database) -> None:
    found = fault(mariadb_or_mysql.engine, "CREATE TABLE wide (a VARCHAR(16000), PRIMARY KEY (a))")
    assert type(found) is DatabaseError
    assert "innodb_page_size" in str(found)


def test_read_only(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER)")
    make_read_only = {
        "sqlite": "PRAGMA query_only = 1",
        "postgresql": "SET TRANSACTION READ ONLY",
        "mariadb": "START TRANSACTION READ ONLY",
    }[database.name]
    found = fault(database.engine, make_read_only, "INSERT INTO petitions VALUES (1)")
    assert type(found) is (DatabaseError if database.name == "sqlite" else ReadOnlyDatabaseError)
    assert "read-only" in str(found)
    database.engine.dispose()  # a pragma outlives its transaction


def _spoilt_header(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)


def _no_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("spoil", "words"), [(_spoilt_header, "no SQLite database"), (_no_folder, "cannot be opened")]
)
def test_sqlite_file_that_is_none(tmp_path: Path, spoil: Callable[[Path], None], words: str) -> None:
    path = tmp_path / "folder" / "petitions.db"
    path.parent.mkdir()
    path.touch()
    engine = open_engine(f"sqlite:///{path}")
    spoil(path)
    found = fault(engine, "SELECT * FROM sqlite_schema")
    engine.dispose()
    assert type(found) is DatabaseError
    assert words in str(found)


def test_disk_that_is_full(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'small.db'}", create=True)
    limit, make = "PRAGMA max_page_count = 3", "CREATE TABLE t (a)"
    found = fault(engine, limit, make, "INSERT INTO t VALUES (zeroblob(100000))")
    engine.dispose()
    assert str(found) == "the disk of the SQLite file, or of SQLite's temporary folder, is full"


def test_disk_that_is_full_after_a_savepoint(tmp_path: Path) -> None:
    """SQLite has then rolled the whole transaction back, so that there is no savepoint to return to."""
    engine = open_engine(f"sqlite:///{tmp_path / 'small.db'}", create=True)
    with engine.connect() as connection:
        connection.execute(text("PRAGMA max_page_count = 30"))
        connection.execute(text("PRAGMA cache_spill = 1"))
        connection.execute(text("CREATE TABLE t (a)"))
        with pytest.raises(SQLAlchemyError) as caught, connection.begin_nested():
            connection.execute(text("INSERT INTO t VALUES (zeroblob(1000000))"))
    engine.dispose()
    assert isinstance(dialect_for(engine).translate_error(caught.value), DiskFullError)


def test_a_deadlock_after_a_savepoint(mariadb_or_mysql: Database) -> None:
    """The server has then rolled the whole transaction back, so that there is no savepoint to return to."""
    run(mariadb_or_mysql, "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)", "INSERT INTO t VALUES (1, 0)")
    run(mariadb_or_mysql, *(f"INSERT INTO t VALUES ({a}, 0)" for a in range(2, 100)))
    engine = mariadb_or_mysql.engine
    with engine.connect() as one, engine.connect() as other, ThreadPoolExecutor(1) as pool:
        one.execute(text("UPDATE t SET b = 1 WHERE a > 1"))  # more work: the server ends the other session
        other.execute(text("UPDATE t SET b = 1 WHERE a = 1"))
        waiting = pool.submit(one.execute, text("UPDATE t SET b = 2 WHERE a = 1"))
        with pytest.raises(SQLAlchemyError) as caught, other.begin_nested():
            other.execute(text("UPDATE t SET b = 2 WHERE a = 2"))
        waiting.result()
    found = dialect_for(engine).translate_error(caught.value)
    assert type(found) is DatabaseUnavailableError
    assert str(found).startswith("deadlock")


@pytest.mark.parametrize(
    ("number", "message", "folder"),
    [
        (1114, "The table 'dedup_band' is full", "@@datadir"),
        (1114, "The table '/var/lib/office/#sql7_1_0' is full", "@@tmpdir"),
        (1114, "The table '(temporary)' is full", "@@tmpdir"),
        (1021, "Disk full (dedup_band); waiting for someone to free some space", "@@datadir"),
        (3, "Error writing file '/var/lib/office/MLfd=71' (Errcode: 28 No space left on device)", "@@tmpdir"),
        (1026, "Error writing file './office/dedup_band.ibd' (Errcode: 28)", "@@datadir"),
        (1026, "Error writing file './office/dedup_band.ibd' (Errcode: 5)", None),
        (1005, "Can't create table `t` (errno: 135 'No more room in record file')", "@@datadir"),
        (1005, "Can't create table `t` (errno: 28 'No space left on device')", "@@datadir"),
        (1005, "Can't create table `t` (errno: 150 'Foreign key constraint is incorrectly formed')", None),
    ],
)
def test_which_disk_of_mariadb_is_full(
    mariadb_database: Database, number: int, message: str, folder: str | None
) -> None:
    """The server raises what it says when a disk is full, which ours is not."""
    signal = f"SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = \"{message}\""
    found = fault(mariadb_database.engine, signal.replace(":", r"\:"))
    assert isinstance(found, DiskFullError) == (folder is not None)
    assert folder is None or f"(SELECT {folder}) is full: {message}" in str(found)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (1203, "User clerk already has more than 'max_user_connections' active connections"),
        (1226, "User 'clerk' has exceeded the 'max_user_connections' resource (current value: 1)"),
    ],
)
def test_a_limit_of_an_account_is_named_and_passes(
    mariadb_database: Database, number: int, message: str
) -> None:
    signal = f"SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = \"{message}\""
    found = fault(mariadb_database.engine, signal.replace(":", r"\:"))
    assert isinstance(found, DatabaseUnavailableError)
    assert str(found) == f"the server's limit for this account is reached: {message}"


def test_the_disk_of_postgresql_is_full(postgresql_database: Database) -> None:
    message = 'could not extend file "base/5/16397": No space left on device'
    found = fault(
        postgresql_database.engine,
        f"DO 'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100'', MESSAGE = ''{message}''; END'".replace(
            ":", r"\:"
        ),
    )
    assert isinstance(found, DiskFullError)
    assert str(found) == f"the disk of the server's data folder (SHOW data_directory) is full: {message}"
