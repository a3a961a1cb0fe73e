"""Which dialect a database gets, and how a session of ours is set up."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import (
    Column,
    Engine,
    Integer,
    MetaData,
    NullPool,
    Table,
    create_engine,
    insert,
    inspect,
    literal,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError, OperationalError

from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import ConfigError, DatabaseUnavailableError, UnknownNameError
from db_dedup.records.names import Namespace
from tests.dialects.tables import run
from tests.servers import Database, Server
from tests.thorough import MYSQL


@contextmanager
def our_engine(database: Database) -> Iterator[Engine]:
    engine = open_engine(database.url, create=True)
    try:
        yield engine
    finally:
        engine.dispose()


def test_found_by_the_name_of_the_database(database: Database) -> None:
    expected = {"sqlite": "SQLiteDialect", "postgresql": "PostgreSQLDialect", "mariadb": "MySQLDialect"}
    assert type(dialect_for(database.engine)).__name__ == expected[database.name]
    with database.engine.connect() as connection:
        assert dialect_for(connection) is dialect_for(database.engine)


def test_namespace(database: Database) -> None:
    found = dialect_for(database.engine).namespace("dedup", "dedup_")
    expected = Namespace("dedup", "") if database.name == "postgresql" else Namespace(None, "dedup_")
    assert found == expected


def test_default_driver() -> None:
    assert open_engine("postgresql://someone@nowhere/x").url.drivername == "postgresql+psycopg"
    assert open_engine("mysql://someone@nowhere/x").url.drivername == "mysql+pymysql"
    assert open_engine("mariadb://someone@nowhere/x").url.drivername == "mariadb+pymysql"


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("petitions.db", ConfigError, "cannot be read"),
        ("", ConfigError, "cannot be read"),
        ("postgresql://a:secret@host:port/x", ConfigError, "cannot be read"),
        ("postgres://a:secret@host/x", UnknownNameError, "postgresql"),
        ("oracle://a:secret@host/x", ConfigError, "Oracle is not supported: export the table"),
        ("nonsense://a:secret@host/x", UnknownNameError, "unknown database 'nonsense'"),
        ("postgresql+nodriver://a:secret@host/x", ConfigError, r"postgresql\+psycopg"),
        ("postgresql+pg8000://a:secret@host/x", ConfigError, r"postgresql\+psycopg"),
        ("mysql+MySQLdb://a:secret@host/x", ConfigError, r"mysql\+pymysql"),
        ("sqlite://a:secret@host/x.db", ConfigError, "URL"),
    ],
)
def test_bad_urls_are_one_clear_line(url: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        open_engine(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_sqlite_file_is_made_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "petitions.db"
    with pytest.raises(DatabaseUnavailableError, match="no database file"):
        open_engine(f"sqlite:///{path}")
    assert not path.exists()
    engine = open_engine(f"sqlite:///{path}", create=True)
    with dialect_for(engine).write_transaction(engine) as connection:
        connection.execute(text("CREATE TABLE t (a)"))
    engine.dispose()
    assert path.exists()
    open_engine(f"sqlite:///{path}").dispose()


def test_sqlite_session(sqlite_database: Database) -> None:
    run(sqlite_database, "CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES (CAST(x'41FF42' AS TEXT))")
    with our_engine(sqlite_database) as engine, engine.connect() as connection:
        assert connection.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
        assert connection.execute(text("PRAGMA busy_timeout")).scalar_one() == 10_000
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "delete"
        assert connection.execute(text("SELECT a FROM t")).scalar_one() == "A\udcffB"


def test_sqlite_ddl_is_rolled_back(sqlite_database: Database) -> None:
    with our_engine(sqlite_database) as engine:
        with engine.connect() as connection:
            connection.execute(text("CREATE TABLE t (a)"))
            connection.rollback()
        with engine.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM sqlite_schema")).scalar_one() == 0


def test_postgresql_session(postgresql_database: Database) -> None:
    expected = {
        "timezone": "UTC",
        "datestyle": "ISO, YMD",
        "intervalstyle": "iso_8601",
        "bytea_output": "hex",
        "standard_conforming_strings": "on",
        "client_encoding": "UTF8",
        "quote_all_identifiers": "off",
    }
    name = make_url(postgresql_database.url).database
    run(
        postgresql_database,
        f"ALTER DATABASE {name} SET client_encoding = 'LATIN1'",
        f"ALTER DATABASE {name} SET quote_all_identifiers = on",
    )
    with our_engine(postgresql_database) as engine:
        for _ in range(2):  # a connection that comes back from the pool, too
            with engine.connect() as connection:
                for name, value in expected.items():
                    assert connection.execute(text(f"SHOW {name}")).scalar_one() == value


@contextmanager
def engine_of_encoding(server: Server, encoding: str) -> Iterator[Engine]:
    """An engine of ours for a new database of PostgreSQL in this encoding."""
    administrator = create_engine(server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    name = f"dedup_test_{secrets.token_hex(6)}"
    create = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    with administrator.connect() as connection:
        connection.execute(text(create))
    engine = open_engine(server.url.set(database=name).render_as_string(hide_password=False))
    try:
        yield engine
    finally:
        engine.dispose()
        with administrator.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name}"))


def test_a_database_without_an_encoding(postgresql_server: Server) -> None:
    """Its texts would come as bytes, also those that SQLAlchemy reads from the first session."""
    with (
        engine_of_encoding(postgresql_server, "SQL_ASCII") as engine,
        engine.connect() as connection,
    ):
        assert connection.execute(text("SELECT '信访'")).scalar_one() == "信访"
        broken = text(r"SELECT * FROM (VALUES (E'\xff')) AS t")
        with pytest.raises(DBAPIError) as caught:
            connection.execute(broken)
    assert "no valid UTF-8" in str(dialect_for(engine).translate_error(caught.value))


def test_a_database_whose_encoding_lacks_a_character(postgresql_server: Server) -> None:
    with (
        engine_of_encoding(postgresql_server, "LATIN1") as engine,
        engine.connect() as connection,
        pytest.raises(DBAPIError) as caught,
    ):
        connection.execute(select(literal("信访")))
    found = dialect_for(engine).translate_error(caught.value)
    assert type(found) is ConfigError
    assert "server_encoding" in str(found)


def test_mariadb_session(mariadb_or_mysql: Database) -> None:
    url = make_url(mariadb_or_mysql.url)
    bare = url.difference_update_query(["charset"]).render_as_string(hide_password=False)
    engine = open_engine(bare)
    with engine.connect() as connection:
        row = connection.execute(text("SELECT @@time_zone, @@sql_mode, @@character_set_connection")).one()
    engine.dispose()
    assert row[0] == "+00:00"
    assert "ANSI_QUOTES" not in row[1]
    assert "STRICT_TRANS_TABLES" in row[1]
    assert row[2] == "utf8mb4"


def test_what_a_server_sets_for_all_sessions(mariadb_or_mysql: Database) -> None:
    """Names in double quotes, few rows or small joins alone, changes by a key alone, transactions that
    commits begin: none is taken over."""
    url = make_url(mariadb_or_mysql.url)
    of_server = (
        "SET SESSION sql_mode = 'ANSI_QUOTES', sql_select_limit = 1, max_join_size = 1, "
        "sql_safe_updates = ON, completion_type = CHAIN"
    )
    engine = open_engine(
        url.update_query_dict({"init_command": of_server}).render_as_string(hide_password=False)
    )
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE `odd one` (`select` INTEGER)"))
        connection.execute(text("INSERT INTO `odd one` VALUES (1), (2)"))
        assert inspect(connection).get_columns("odd one")[0]["name"] == "select"
        assert connection.execute(text("SELECT * FROM `odd one`")).all() == [(1,), (2,)]
    with dialect_for(engine).write_transaction(engine) as connection:
        connection.execute(text("DELETE FROM `odd one`"))
    engine.dispose()


@pytest.mark.parametrize("level", ["SERIALIZABLE", "READ UNCOMMITTED"])
def test_mariadb_reads_neither_wait_for_what_is_not_committed_nor_see_it(
    mariadb_or_mysql: Database, level: str
) -> None:
    """Whatever level of isolation the server gives to all sessions."""
    run(mariadb_or_mysql, "CREATE TABLE t (a INTEGER)")
    of_server = f"SET SESSION TRANSACTION ISOLATION LEVEL {level}"
    url = make_url(mariadb_or_mysql.url).update_query_dict({"init_command": of_server})
    engine = open_engine(url.render_as_string(hide_password=False))
    with mariadb_or_mysql.engine.connect() as writer, engine.connect() as reader:
        writer.execute(text("INSERT INTO t VALUES (1)"))
        reader.execute(text("SET SESSION innodb_lock_wait_timeout = 1"))
        assert reader.execute(text("SELECT a FROM t")).all() == []
    engine.dispose()


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_postgresql_sessions_are_at_read_committed(database: Database) -> None:
    """Reads at SERIALIZABLE would make transactions of the application fail, and be made to fail by them."""
    of_server = {"options": "-c default_transaction_isolation=serializable"}
    engine = open_engine(
        make_url(database.url).update_query_dict(of_server).render_as_string(hide_password=False)
    )
    with dialect_for(engine).read_snapshot(engine) as connection:
        assert connection.scalar(text("SHOW transaction_isolation")) == "repeatable read"
    for _ in range(2):  # also after the level of the snapshot was put back
        with engine.connect() as connection:
            assert connection.scalar(text("SHOW transaction_isolation")) == "read committed"
    engine.dispose()


def test_a_check_that_blocks_sees_all_rows_and_puts_the_limit_back(mariadb_or_mysql: Database) -> None:
    dialect = dialect_for(mariadb_or_mysql.engine)
    numbers = Table("numbers", MetaData(), Column("n", Integer, primary_key=True))
    with mariadb_or_mysql.engine.begin() as connection:
        numbers.create(connection)
        connection.execute(insert(numbers), [{"n": 1}, {"n": 2}])
    with mariadb_or_mysql.engine.begin() as connection:
        connection.execute(text("SET SESSION sql_select_limit = 1"))
        lock = update(numbers).where(numbers.c.n == 1).values(n=1)
        with dialect.lock_row(connection, lock, numbers):
            assert len(connection.execute(select(numbers)).all()) == 2
        assert connection.execute(text("SELECT @@sql_select_limit")).scalar_one() == 1


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_write_transaction(database: Database, whose: str) -> None:
    dialect = dialect_for(database.engine)
    with our_engine(database) as ours:
        engine = ours if whose == "ours" else database.engine
        with dialect.write_transaction(engine) as connection:
            connection.execute(text("CREATE TABLE t (a INTEGER)"))
        with dialect.write_transaction(engine) as connection:
            connection.execute(text("INSERT INTO t VALUES (1)"))
        with suppress(ZeroDivisionError), dialect.write_transaction(engine) as connection:
            connection.execute(text("INSERT INTO t VALUES (2)"))
            raise ZeroDivisionError
        with dialect.read_snapshot(engine) as connection:
            assert connection.execute(text("SELECT a FROM t")).scalars().all() == [1]
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT a FROM t")).scalars().all() == [1]


@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_snapshot_does_not_see_what_comes_after(database: Database, whose: str) -> None:
    run(database, "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
    if database.name == "sqlite":
        run(database, "PRAGMA journal_mode = wal")
    dialect = dialect_for(database.engine)
    with our_engine(database) as ours:
        engine = ours if whose == "ours" else database.engine
        with dialect.read_snapshot(engine) as reader:
            assert dialect.reads_beside_writes(reader)
            assert reader.execute(text("SELECT count(*) FROM t")).scalar_one() == 1
            with dialect.write_transaction(engine) as writer:
                writer.execute(text("INSERT INTO t VALUES (2)"))
            assert reader.execute(text("SELECT count(*) FROM t")).scalar_one() == 1
        with dialect.read_snapshot(engine) as reader:
            assert reader.execute(text("SELECT count(*) FROM t")).scalar_one() == 2


def test_mariadb_snapshot_begins_before_its_first_read(mariadb_or_mysql: Database) -> None:
    run(mariadb_or_mysql, "CREATE TABLE t (a INTEGER)")
    dialect = dialect_for(mariadb_or_mysql.engine)
    with dialect.read_snapshot(mariadb_or_mysql.engine) as reader:
        run(mariadb_or_mysql, "INSERT INTO t VALUES (1)")
        assert reader.execute(text("SELECT count(*) FROM t")).scalar_one() == 0


IDLE = {
    "postgresql": ("options", "-c idle_in_transaction_session_timeout=9min"),
    "mariadb": ("init_command", "SET SESSION idle_readonly_transaction_timeout=540, wait_timeout=540"),
    "mysql": ("init_command", "SET SESSION wait_timeout=540"),
}
SHOW_IDLE = {
    "postgresql": "SHOW idle_in_transaction_session_timeout",
    "mariadb": "SELECT concat(@@idle_readonly_transaction_timeout, ' ', @@wait_timeout)",
    "mysql": "SELECT concat(@@wait_timeout)",
}


@pytest.mark.parametrize("database", ["postgresql", "mariadb", MYSQL], indirect=True)
def test_a_snapshot_outlives_long_work(database: Database) -> None:
    """`verify` runs no statement while it matches, whatever limit the server has for such a session."""
    is_mysql = not getattr(database.engine.dialect, "is_mariadb", True)
    server = "mysql" if is_mysql else database.name
    option, value = IDLE[server]
    url = make_url(database.url).update_query_dict({option: value})
    engine = open_engine(url.render_as_string(hide_password=False))
    with dialect_for(engine).read_snapshot(engine) as connection:
        shown = connection.execute(text(SHOW_IDLE[server])).scalar_one()
        assert set(str(shown).split()) in ({"0"}, {"28800"})
    if server == "postgresql":  # a transaction that may write keeps the limit
        with engine.connect() as connection:
            assert connection.execute(text(SHOW_IDLE[server])).scalar_one() == "9min"
    engine.dispose()


def test_snapshot_leaves_the_session_as_it_was(database: Database) -> None:
    if database.name == "sqlite":
        run(database, "CREATE TABLE t (a INTEGER)")
    dialect = dialect_for(database.engine)
    with dialect.read_snapshot(database.engine) as connection:
        connection.execute(text("SELECT 1"))
    run(database, "CREATE TABLE after_it (a INTEGER)", "INSERT INTO after_it VALUES (1)")


def test_sqlite_without_wal_cannot_read_beside_writes(sqlite_database: Database) -> None:
    dialect = dialect_for(sqlite_database.engine)
    with dialect.read_snapshot(sqlite_database.engine) as connection:
        assert not dialect.reads_beside_writes(connection)


def test_sqlite_writers_wait_for_each_other(sqlite_database: Database) -> None:
    run(sqlite_database, "CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (0)")
    dialect = dialect_for(sqlite_database.engine)
    failures: list[Exception] = []

    def add_ones(engine: Engine) -> None:
        try:
            for _ in range(20):
                with dialect.write_transaction(engine) as connection:
                    seen = connection.execute(text("SELECT a FROM t")).scalar_one()
                    connection.execute(text("UPDATE t SET a = :next"), {"next": seen + 1})
        except OperationalError as error:
            failures.append(error)

    with our_engine(sqlite_database) as engine:
        threads = [threading.Thread(target=add_ones, args=(engine,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with engine.connect() as connection:
            assert connection.execute(text("SELECT a FROM t")).scalar_one() == 60
    assert not failures


def test_engine_hides_parameters(database: Database) -> None:
    with (
        our_engine(database) as engine,
        engine.connect() as connection,
        pytest.raises(Exception, match="hidden") as caught,
    ):
        connection.execute(text("SELECT :secret FROM no_such_table"), {"secret": "a citizen's name"})
    assert "citizen" not in str(caught.value)


def test_engines_that_are_not_ours_are_left_alone(sqlite_database: Database) -> None:
    dialect = dialect_for(sqlite_database.engine)
    with dialect.write_transaction(sqlite_database.engine) as connection:
        connection.execute(text("CREATE TABLE t (a)"))
    engine = create_engine(sqlite_database.url)
    with sqlite_database.engine.connect() as theirs, engine.connect() as fresh:
        for pragma in ("foreign_keys", "cache_size"):
            query = text(f"PRAGMA {pragma}")
            assert theirs.execute(query).scalar_one() == fresh.execute(query).scalar_one()
    engine.dispose()
