"""Values of every type a column can have, read and written as text."""

from __future__ import annotations

import pytest

from db_dedup.dialects import open_engine
from tests.dialects.tables import rows_by_key, rows_of, run, source_of
from tests.servers import Database

POSTGRESQL_VALUES = [
    ("numeric", "1.50", "1.5"),
    ("numeric", "'NaN'", "NaN"),
    ("double precision", "0.1", "0.1"),
    ("real", "0.1", "0.1"),
    ("boolean", "true", "1"),
    ("date", "'2019-02-14'", "2019-02-14"),
    ("date", "'infinity'", "infinity"),
    ("timestamp", "'2019-02-14 20:00:00.5'", "2019-02-14 20:00:00.500000"),
    ("timestamptz", "'2019-02-14 20:00:00+08'", "2019-02-14 12:00:00"),
    ("timestamptz", "'-infinity'", "-infinity"),
    ("time", "'20:00'", "20:00:00"),
    ("jsonb", '\'{"b": [1],"a": "拆"}\'', '{"a":"拆","b":[1]}'),
    ("bytea", r"'\xff00'", "ff00"),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("text[]", "'{拆,迁}'", "{拆,迁}"),
    ("daterange", "'[2019-02-14,)'", "[2019-02-14,)"),
    ("mood", "'angry'", "angry"),
    ("point", "'(1,2)'", "(1,2)"),
    ("char(5)", "'ab'", "ab"),
    ("text", "NULL", ""),
]
MARIADB_VALUES = [
    ("DECIMAL(10,2)", "1.5", "1.5"),
    ("DOUBLE", "0.1", "0.1"),
    ("FLOAT", "0.1", "0.1"),
    ("BOOLEAN", "TRUE", "1"),
    ("DATE", "'2019-02-14'", "2019-02-14"),
    ("DATE", "'0000-00-00'", "0000-00-00"),
    ("DATETIME(6)", "'2019-02-14 20:00:00.5'", "2019-02-14 20:00:00.500000"),
    ("TIMESTAMP NULL", "'2019-02-14 20:00:00'", "2019-02-14 12:00:00"),
    ("TIME", "'-25:00:00'", "-25:00:00"),
    ("BLOB", "x'ff00'", "ff00"),
    ("BIT(8)", "b'101'", "5"),
    ("ENUM('angry')", "'angry'", "angry"),
    ("SET('a','b')", "'a,b'", "a,b"),
    ("VARCHAR(5) CHARACTER SET latin1", "'é'", "é"),
    ("TEXT", "NULL", ""),
]
SQLITE_VALUES = [
    ("DECIMAL(10,2)", "1.50", "1.5"),
    ("REAL", "2", "2"),
    ("BOOLEAN", "1", "1"),
    ("BOOLEAN", "'true'", "1"),
    ("DATE", "'2019-02-14'", "2019-02-14"),
    ("DATE", "'sometime'", "sometime"),
    ("DATETIME", "'2019-02-14T20:00:00+08:00'", "2019-02-14 12:00:00"),
    ("DATETIME", "1550174400", "1550174400"),
    ("INTEGER", "'no number'", "no number"),
    ("INTEGER", "x'ff'", "255"),
    ("TIME", "'20:00'", "20:00:00"),
    ("JSON", '\'{"b": [1],"a": "拆"}\'', '{"a":"拆","b":[1]}'),
    ("BLOB", "x'ff00'", "ff00"),
    ("BLOB", "'text'", "text"),
    ("TEXT", "x'e68b86'", "拆"),
    ("TEXT", "NULL", ""),
    ("", "'x'", "x"),
]


@pytest.mark.parametrize(("kind", "literal", "expected"), POSTGRESQL_VALUES)
def test_postgresql_values(postgresql_database: Database, kind: str, literal: str, expected: str) -> None:
    run(postgresql_database, "CREATE TYPE mood AS ENUM ('calm', 'angry')")
    assert_value(postgresql_database, kind, literal, expected)


@pytest.mark.parametrize(("kind", "literal", "expected"), MARIADB_VALUES)
def test_mariadb_values(mariadb_or_mysql: Database, kind: str, literal: str, expected: str) -> None:
    assert_value(mariadb_or_mysql, kind, literal, expected)


def test_json_is_text_on_mariadb_and_a_document_on_mysql(mariadb_or_mysql: Database) -> None:
    stored = '{"b": [1],"a": "拆"}'
    expected = {"mariadb": stored, "mysql": '{"a":"拆","b":[1]}'}[mariadb_or_mysql.engine.dialect.name]
    assert_value(mariadb_or_mysql, "JSON", f"'{stored}'", expected)


@pytest.mark.parametrize(("kind", "literal", "expected"), SQLITE_VALUES)
def test_sqlite_values(sqlite_database: Database, kind: str, literal: str, expected: str) -> None:
    assert_value(sqlite_database, kind, literal, expected)


def assert_value(database: Database, kind: str, literal: str, expected: str) -> None:
    escaped = literal.replace(":", r"\:")
    run(
        database,
        *(["SET SESSION sql_mode = ''"] if database.name == "mariadb" else []),
        f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, body {kind})",
        f"INSERT INTO petitions VALUES (1, {escaped})",
    )
    source = source_of(database, order="body")
    [row] = rows_of(database, source)
    assert row.values == (expected,)
    assert rows_by_key(database, source, ["1"]) == [row]


def test_broken_text_is_read(sqlite_database: Database) -> None:
    run(
        sqlite_database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body TEXT)",
        "INSERT INTO petitions VALUES (1, CAST(x'41ff42' AS TEXT))",
    )
    engine = open_engine(sqlite_database.url)
    [[row]] = source_of(sqlite_database).pages(engine)
    engine.dispose()
    assert row.values == ("A\ufffdB",)
