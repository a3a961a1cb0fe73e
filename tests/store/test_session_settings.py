"""Texts of values do not depend on the session: a scan, a caller's own session and a record agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from psycopg.types.range import Range
from sqlalchemy import Connection, MetaData, Table, create_engine, func, make_url, select, text
from sqlalchemy.exc import ProgrammingError

from db_dedup import Deduplicator
from db_dedup.dialects import named_dialect, open_engine
from db_dedup.errors import ConfigError
from db_dedup.store.source import Source
from tests.bad_input.conftest import NEAR, SAME
from tests.dialects.tables import run, source_of
from tests.servers import Database

SHANGHAI = timezone(timedelta(hours=8))
EVENING = datetime(2019, 2, 14, 20, tzinfo=SHANGHAI)
POSTGRESQL_SESSION = {
    "timezone": "Asia/Shanghai",
    "datestyle": "German",
    "intervalstyle": "postgres_verbose",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "lc_monetary": "C.UTF-8",
    "array_nulls": "off",
}
POSTGRESQL_VALUES: list[tuple[str, str, list[Any]]] = [
    (
        "tstzrange",
        "'[2019-02-14 20:00:00+08,)'",
        [Range(EVENING, None), "[2019-02-14 20:00:00+08,)", Range(EVENING.astimezone(UTC))],
    ),
    ("tstzmultirange", "'{[2019-02-14 20:00:00+08,)}'", ["{[2019-02-14 12:00:00+00,)}"]),
    ("daterange", "'[2019-02-14,2019-02-16]'", [Range(date(2019, 2, 14), date(2019, 2, 17))]),
    ("int4range", "'[1,4]'", [Range(1, 5), "[1,5)", "(0,5)"]),
    ("timestamptz[]", "'{2019-02-14 20:00:00+08}'", [[EVENING], "{2019-02-14 12:00:00+00}"]),
    ("text[]", "'{a,b}'", [["a", "b"], "{a, b}"]),
    ("text[]", "ARRAY['a',NULL]", [["a", None], "{a, NULL}"]),
    ("bytea[]", r"ARRAY['\x0aff']::bytea[]", [[b"\x0a\xff"]]),
    ("float8[]", "ARRAY[0.1234567890123456]", [[0.1234567890123456]]),
    ("float8", "0.1234567890123456", [0.1234567890123456, "0.1234567890123456"]),
    ("visit", "ROW('2019-02-14 20:00:00+08', 'hall')", [("2019-02-14 12:00+00", "hall"), (EVENING, "hall")]),
    ("interval", "'1 day 02:00'", [timedelta(days=1, hours=2), "1 day 2 hours"]),
    ("money", "'1234.50'", [Decimal("1234.5"), "1234.50"]),
    ("jsonb", '\'{"at": "2019-02-14"}\'', [{"at": "2019-02-14"}, '{"at":   "2019-02-14"}']),
    ("xml", "'<at>2019-02-14</at>'", ["<at>2019-02-14</at>"]),
    ("timestamptz", "'2019-02-14 20:00:00+08'", [EVENING, "2019-02-14T12:00:00Z"]),
    ("point", "'(0.1234567890123456,1)'", ["(0.1234567890123456,1)"]),
]


@contextmanager
def odd_session(database: Database, *, autocommit: bool = False) -> Iterator[Connection]:
    """A session of the caller's, whose own settings must be there afterwards."""
    plain = create_engine(database.url, isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED")
    with plain.connect() as connection:
        for name, value in POSTGRESQL_SESSION.items():
            connection.execute(select(func.set_config(name, value, False)))
        connection.commit()
        yield connection
        for name, value in POSTGRESQL_SESSION.items():
            assert connection.execute(text(f"SHOW {name}")).scalar_one().startswith(value)
    plain.dispose()


def make_petitions(database: Database, kind: str, literal: str) -> Source:
    run(
        database,
        "CREATE TYPE visit AS (at timestamptz, place text)",
        f"CREATE TABLE petitions (id integer PRIMARY KEY, body {kind})",
        f"INSERT INTO petitions VALUES (1, {literal.replace(':', chr(92) + ':')})",
    )
    return source_of(database)


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize(("kind", "literal", "given"), POSTGRESQL_VALUES, ids=str)
def test_postgresql(
    postgresql_database: Database, kind: str, literal: str, given: list[Any], autocommit: bool
) -> None:
    source = make_petitions(postgresql_database, kind, literal)
    ours = open_engine(postgresql_database.url)
    [[expected]] = source.pages(ours)
    ours.dispose()
    with odd_session(postgresql_database, autocommit=autocommit) as connection:
        assert list(source.read_rows(connection, ["1"])) == [expected]
        if not autocommit:
            assert [row for page in source.read_pages(connection) for row in page] == [expected]
        for value in given:
            assert source.rows_from(connection, [{"body": value}])[0].values == expected.values, value


def test_a_value_that_is_none_of_its_type(postgresql_database: Database) -> None:
    """It is compared as the text that it is, and the caller's transaction goes on."""
    source = make_petitions(postgresql_database, "tstzrange", "'empty'")
    for autocommit in (False, True):
        with odd_session(postgresql_database, autocommit=autocommit) as connection:
            for value in ("no range", {"a": 1}, object):
                row = source.rows_from(connection, [{"body": value}])[0]
                assert row.values != ("empty",)
                assert connection.execute(text("SELECT 1")).scalar_one() == 1
            assert source.rows_from(connection, [{"body": None}])[0].values == ("",)


def test_a_check_in_another_time_zone(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (id integer PRIMARY KEY, body text, during tstzrange)",
        f"INSERT INTO petitions VALUES (1, '{SAME}', '[2019-02-14 20\\:00\\:00+08,)')",
    )
    columns = {"body": {"kind": "text"}, "during": {"kind": "value"}}
    dedup = Deduplicator(postgresql_database.url, "petitions", columns)
    dedup.upgrade()
    dedup.scan()
    with odd_session(postgresql_database) as connection:
        for body in (SAME, NEAR):
            record = {"body": body, "during": Range(EVENING, None)}
            assert [match.row_key for match in dedup.check(record, connection)] == ["1"]
    dedup.database.close()


def test_keys_in_another_time_zone(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (id tstzrange PRIMARY KEY, body text)",
        "INSERT INTO petitions VALUES ('[2019-02-14 20\\:00\\:00+08,)', 'x')",
    )
    source = source_of(postgresql_database)
    key = '["2019-02-14 12:00:00+00",)'
    with odd_session(postgresql_database) as connection:
        [row] = source.read_rows(connection, [key])
        assert row.row_key == key


def test_mariadb(mariadb_database: Database) -> None:
    run(
        mariadb_database,
        "SET time_zone = '+00:00'",
        "CREATE TABLE petitions (id CHAR(8), at TIMESTAMP(6) NOT NULL, body CHAR(20), PRIMARY KEY (id, at))",
        "INSERT INTO petitions VALUES ('ab', '2019-02-14 12:00:00.123456', 'some text')",
    )
    source = source_of(mariadb_database, columns={"body": 1, "at": 1}, where="at < '2019-02-14 12:30'")
    ours = open_engine(mariadb_database.url)
    [[expected]] = source.pages(ours)
    ours.dispose()
    assert expected.row_key == '["ab","2019-02-14 12:00:00.123456"]'
    plain = create_engine(mariadb_database.url)
    odd = "+08:00", "PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES"
    with plain.connect() as connection:
        connection.execute(text("SET time_zone = :zone, sql_mode = :mode"), {"zone": odd[0], "mode": odd[1]})
        assert list(source.read_rows(connection, [expected.row_key])) == [expected]
        assert [row for page in source.read_pages(connection) for row in page] == [expected]
        zone, mode = connection.execute(text("SELECT @@time_zone, @@sql_mode")).one()
        assert (zone, set(mode.split(","))) == (odd[0], set(odd[1].split(",")))
    plain.dispose()


def test_a_session_that_cannot_hold_every_character(mariadb_database: Database) -> None:
    """The server would replace a character of four bytes by a question mark."""
    narrow = make_url(mariadb_database.url).update_query_dict({"charset": "utf8"})
    plain, dialect = create_engine(narrow), named_dialect("mariadb")
    refused = pytest.raises(ConfigError, match="charset=utf8mb4")
    lock, queue = select(text("1")), Table("change", MetaData())
    with plain.connect() as connection, refused, dialect.lock_row(connection, lock, queue):
        pass
    plain.dispose()


def test_a_lock_leaves_nothing_on_the_connection(mariadb_database: Database) -> None:
    """A connection that checks many rows would run each statement past a listener of every check."""
    dialect = named_dialect("mariadb")
    lock, queue = select(text("1")), Table("change", MetaData())
    with mariadb_database.engine.connect() as connection:
        connection.execute(text("START TRANSACTION"))
        with dialect.lock_row(connection, lock, queue):
            assert len(list(connection.dispatch.before_execute)) == 1
        assert len(list(connection.dispatch.before_execute)) == 0
        connection.execute(lock)


def test_rows_that_row_level_security_hides(postgresql_database: Database) -> None:
    """Those of an account that sees no row would all count as deleted."""
    make_petitions(postgresql_database, "text", "'夜间施工噪音扰民'")
    run(
        postgresql_database,
        "DROP ROLE IF EXISTS dedup_blind",
        "CREATE ROLE dedup_blind LOGIN",
        "GRANT SELECT ON petitions TO dedup_blind",
        "ALTER TABLE petitions ENABLE ROW LEVEL SECURITY",
    )
    source = source_of(postgresql_database)
    blind = make_url(postgresql_database.url).set(username="dedup_blind", password=None)
    ours, theirs = open_engine(blind.render_as_string(hide_password=False)), create_engine(blind)
    try:
        for engine in (ours, theirs):
            with pytest.raises(ProgrammingError, match="row-level security"):
                list(source.pages(engine))
        with theirs.connect() as connection:
            assert connection.execute(text("SHOW row_security")).scalar_one() == "on"
    finally:
        ours.dispose()
        theirs.dispose()
        run(postgresql_database, "DROP OWNED BY dedup_blind", "DROP ROLE dedup_blind")
