"""A row's key as text: the same from a scan, a trigger and a view, and the way back to the row."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select, text

from db_dedup.config import watched_table
from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import ConfigError
from db_dedup.store.source import Source
from tests.dialects.tables import (
    as_clause,
    fill,
    inspected,
    rows_by_key,
    rows_of,
    run,
    source_of,
    store_keys,
)
from tests.servers import Database

DIFFICULT_TEXTS = [
    "plain",
    "it's",
    'say "it"',
    "back\\slash",
    "tab\tand\nline",
    "拆迁补偿",
    "😀",
    "ends in a blank ",
    "50%",
    "a:b",
    "ＦＵＬＬ",
    "é",
    "null",
    "[]",
]


def assert_keys(database: Database, expected: list[str]) -> None:
    """The table has these keys; by each, a list and a table of ours find the row it belongs to."""
    source = source_of(database)
    rows = rows_of(database, source)
    assert sorted(row.row_key for row in rows) == sorted(expected)
    body_of = {row.row_key: row.values for row in rows}
    found = rows_by_key(database, source, expected)
    assert sorted(row.row_key for row in found) == sorted(expected)
    assert {row.row_key: row.values for row in found} == body_of
    dialect, petitions = dialect_for(database.engine), as_clause(inspected(database))
    key = dialect.row_key(source.key_columns, petitions)
    ours = store_keys(database, "ours", select(key).select_from(petitions))
    joins = dialect.key_matches(source.key_columns, petitions, ours.c.row_key), key == ours.c.row_key
    with database.engine.connect() as connection:
        for join in joins:
            query = select(ours.c.row_key, petitions.c.body).select_from(ours.join(petitions, join))
            assert {row[0]: (row[1],) for row in connection.execute(query)} == body_of


@pytest.mark.parametrize("kind", ["INTEGER", "BIGINT", "SMALLINT"])
def test_integers(database: Database, kind: str) -> None:
    values = [0, 1, -7, 32767] if kind == "SMALLINT" else [0, 1, -7, 2**31 - 1]
    if kind == "BIGINT":
        values += [2**63 - 1, -(2**63)]
    run(database, f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body VARCHAR(100))")
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, :body)",
        [{"id": value, "body": f"row {value}"} for value in values],
    )
    assert_keys(database, [str(value) for value in values])


def test_texts(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id VARCHAR(100) NOT NULL PRIMARY KEY, body VARCHAR(100))")
    fill(
        database,
        "INSERT INTO petitions VALUES (:id, :body)",
        [{"id": value, "body": f"row {i}"} for i, value in enumerate(DIFFICULT_TEXTS)],
    )
    assert_keys(database, DIFFICULT_TEXTS)


def test_composite_is_a_json_array(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (region VARCHAR(100) NOT NULL, day DATE NOT NULL, number INTEGER NOT NULL, "
        "body VARCHAR(100), PRIMARY KEY (region, day, number))",
    )
    fill(
        database,
        "INSERT INTO petitions VALUES (:region, '2019-02-14', :number, :body)",
        [{"region": value, "number": -i, "body": f"row {i}"} for i, value in enumerate(DIFFICULT_TEXTS)],
    )
    expected = [
        json.dumps([value, "2019-02-14", str(-i)], ensure_ascii=False, separators=(",", ":"))
        for i, value in enumerate(DIFFICULT_TEXTS)
    ]
    assert_keys(database, expected)


def test_composite_with_control_characters_is_read_back(database: Database) -> None:
    values = ["bell\a", "escape\x1b", "unit\x1f", "feed\f"]
    run(
        database,
        "CREATE TABLE petitions (region VARCHAR(100) NOT NULL, number INTEGER NOT NULL, "
        "body VARCHAR(100), PRIMARY KEY (region, number))",
    )
    fill(
        database,
        "INSERT INTO petitions VALUES (:region, 1, :region)",
        [{"region": value} for value in values],
    )
    source = source_of(database)
    rows = rows_of(database, source)
    assert sorted(json.loads(row.row_key)[0] for row in rows) == sorted(values)
    assert rows_by_key(database, source, [row.row_key for row in rows]) == rows


POSTGRESQL_KEYS: list[tuple[str, list[str], list[str]]] = [
    ("uuid", ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("numeric(10,2)", ["1.5", "-20"], ["1.50", "-20.00"]),
    ("boolean", ["true", "false"], ["1", "0"]),
    ("date", ["'2019-02-14'", "'infinity'"], ["2019-02-14", "infinity"]),
    (
        "timestamp",
        ["'2019-02-14 20:00:00'", "'2019-02-14 20:00:00.5'", "'-infinity'"],
        ["2019-02-14 20:00:00", "2019-02-14 20:00:00.5", "-infinity"],
    ),
    ("timestamptz", ["'2019-02-14 20:00:00+08'"], ["2019-02-14 12:00:00"]),
    ("time", ["'20:00:00'"], ["20:00:00"]),
    ("bytea", [r"'\x00ABFF'"], ["00abff"]),
    ("char(5)", ["'ab'"], ["ab"]),
    ("inet", ["'10.0.0.1'"], ["10.0.0.1/32"]),
    ('text COLLATE "POSIX"', ["'b'", "'B '"], ["b", "B "]),
    ("mood", ["'angry'"], ["angry"]),
    ("reference", ["'信访-1'"], ["信访-1"]),
    ("int4range", ["'[1,5)'"], ["[1,5)"]),
    ("amount", ["1.0", "1.50"], ["1.0", "1.50"]),
    ("small_amount", ["1.0", "1.50"], ["1.0", "1.50"]),
    ("kind_mood", ["'calm'", "'angry'"], ["calm", "angry"]),
]


@pytest.mark.parametrize(("kind", "literals", "expected"), POSTGRESQL_KEYS, ids=str)
def test_postgresql_types(
    postgresql_database: Database, kind: str, literals: list[str], expected: list[str]
) -> None:
    run(
        postgresql_database,
        "CREATE TYPE mood AS ENUM ('calm', 'angry')",
        "CREATE DOMAIN reference AS varchar(20) CHECK (value <> '')",
        "CREATE DOMAIN amount AS numeric",
        "CREATE DOMAIN kind_mood AS mood",
        "CREATE DOMAIN small_amount AS amount CHECK (value < 9)",
        f"CREATE TABLE petitions (id {kind} PRIMARY KEY, body text)",
        *(f"INSERT INTO petitions VALUES ({value}, 'row {i}')" for i, value in enumerate(literals)),
    )
    assert_keys(postgresql_database, expected)


MARIADB_KEYS: list[tuple[str, list[str], list[str]]] = [
    ("BIGINT UNSIGNED", ["18446744073709551615", "0"], ["18446744073709551615", "0"]),
    ("DECIMAL(10,2)", ["1.5", "-20"], ["1.50", "-20.00"]),
    ("DATE", ["'2019-02-14'"], ["2019-02-14"]),
    ("DATETIME", ["'2019-02-14 20:00:00'"], ["2019-02-14 20:00:00"]),
    ("DATETIME(6)", ["'2019-02-14 20:00:00.5'"], ["2019-02-14 20:00:00.5"]),
    ("TIMESTAMP", ["'2019-02-14 20:00:00'"], ["2019-02-14 12:00:00"]),
    (
        "TIMESTAMP",
        ["'0000-00-00 00:00:00'", "'1970-01-01 08:00:01'"],
        ["1970-01-01 00:00:00", "1970-01-01 00:00:01"],
    ),
    ("TIMESTAMP(3)", ["'2019-02-14 20:00:00.125'"], ["2019-02-14 12:00:00.125"]),
    ("TIME", ["'20:00:00'"], ["20:00:00"]),
    ("YEAR", ["2019"], ["2019"]),
    ("BINARY(4)", ["x'00ABFF'"], ["00abff00"]),
    ("VARBINARY(4)", ["x'00ABFF'", "''"], ["00abff", ""]),
    ("BIT(8)", ["b'101'"], ["5"]),
    ("CHAR(5)", ["'ab'"], ["ab"]),
    ("ENUM('calm','angry')", ["'angry'"], ["angry"]),
    ("VARCHAR(20) CHARACTER SET latin1", ["'é'", "'b'"], ["é", "b"]),
    ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", ["'B'", "'é'"], ["B", "é"]),
    ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", ["'信访'"], ["信访"]),
]


@pytest.mark.parametrize(("kind", "literals", "expected"), MARIADB_KEYS, ids=str)
def test_mariadb_types(
    mariadb_database: Database, kind: str, literals: list[str], expected: list[str]
) -> None:
    run(
        mariadb_database,
        "SET time_zone = '+08:00'",
        f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body TEXT)",
        *(f"INSERT INTO petitions VALUES ({value}, 'row {i}')" for i, value in enumerate(literals)),
    )
    assert_keys(mariadb_database, expected)


def test_a_day_that_no_month_has_is_found_by_our_sessions(mariadb_or_mysql: Database) -> None:
    """A session with ALLOW_INVALID_DATES stores it."""
    run(
        mariadb_or_mysql,
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        "CREATE TABLE petitions (day DATE NOT NULL PRIMARY KEY, body TEXT)",
        "INSERT INTO petitions VALUES ('2019-02-31', 'x')",
    )
    source = source_of(mariadb_or_mysql)
    ours = open_engine(mariadb_or_mysql.url)
    try:
        with ours.connect() as connection:
            (found,) = source.read_rows(connection, ["2019-02-31"])
    finally:
        ours.dispose()
    assert found.row_key == "2019-02-31"


SQLITE_KEYS: list[tuple[str, list[str], list[str]]] = [
    ("BLOB", ["x'00ABFF'"], ["00abff"]),
    ("", ["1", "'two'", "'03'"], ["1", "two", "03"]),
    ("DATE", ["'2019-02-14'"], ["2019-02-14"]),
    ("DATETIME", ["'2019-02-14 20:00:00.000000'"], ["2019-02-14 20:00:00.000000"]),
    ("DECIMAL(10,2)", ["20"], ["20"]),
    ("CHAR(32)", ["'a0eebc999c0b4ef8bb6d6bb9bd380a11'"], ["a0eebc999c0b4ef8bb6d6bb9bd380a11"]),
    ("TEXT COLLATE NOCASE", ["'b'", "'A'"], ["b", "A"]),
    ("STRING", ["'x'", "7"], ["x", "7"]),
]


@pytest.mark.parametrize(("kind", "literals", "expected"), SQLITE_KEYS, ids=str)
def test_sqlite_types(sqlite_database: Database, kind: str, literals: list[str], expected: list[str]) -> None:
    run(
        sqlite_database,
        f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body TEXT)",
        *(f"INSERT INTO petitions VALUES ({value}, 'row {i}')" for i, value in enumerate(literals)),
    )
    assert_keys(sqlite_database, expected)


@pytest.mark.parametrize("kind", ["FLOAT", "REAL", "DOUBLE PRECISION"])
def test_floats_are_refused(database: Database, kind: str) -> None:
    run(database, f"CREATE TABLE petitions (id {kind} NOT NULL PRIMARY KEY, body VARCHAR(100))")
    source = source_of(database)
    with pytest.raises(ConfigError, match=r"'id'.*cannot be a key"):
        rows_of(database, source)


def test_types_that_are_called_like_floats(mariadb_database: Database) -> None:
    run(
        mariadb_database,
        "CREATE TABLE petitions (id ENUM('double', 'it''s real') NOT NULL PRIMARY KEY, body VARCHAR(100))",
        "INSERT INTO petitions VALUES ('double', 'x')",
    )
    assert_keys(mariadb_database, ["double"])


def test_a_type_of_the_user_s_that_is_called_like_a_float(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TYPE realm AS ENUM ('north')",
        "CREATE TABLE petitions (id realm PRIMARY KEY, body text)",
        "INSERT INTO petitions VALUES ('north', 'x')",
    )
    assert_keys(postgresql_database, ["north"])


def test_session_settings_do_not_show(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (at timestamptz, day date, body bytea, PRIMARY KEY (at, day, body))",
        r"INSERT INTO petitions VALUES ('2019-02-14 20:00:00+08', '2019-02-14', '\xff')",
    )
    source = inspected(postgresql_database)
    dialect = dialect_for(postgresql_database.engine)
    table = as_clause(source)
    key = dialect.row_key(source.columns, table)
    texts = set()
    for settings in (
        "SET timezone = 'UTC'",
        "SET timezone = 'America/New_York'",
        "SET datestyle = 'German'",
        "SET bytea_output = 'escape'",
    ):
        with postgresql_database.engine.connect() as connection:
            connection.execute(text(settings))
            texts.add(connection.execute(select(key).select_from(table)).scalar_one())
    assert texts == {'["2019-02-14 12:00:00","2019-02-14","ff"]'}


def test_mariadb_time_zone_does_not_show(mariadb_database: Database) -> None:
    run(
        mariadb_database,
        "SET time_zone = '+00:00'",
        "CREATE TABLE petitions (at TIMESTAMP NOT NULL PRIMARY KEY, body TEXT)",
        "INSERT INTO petitions VALUES ('2019-02-14 12:00:00', 'x')",
    )
    source = inspected(mariadb_database)
    table = as_clause(source)
    key = dialect_for(mariadb_database.engine).row_key(source.columns[:1], table)
    for zone in ("+00:00", "-05:00", "+08:00"):
        with mariadb_database.engine.connect() as connection:
            connection.execute(text(f"SET time_zone = '{zone}'"))
            found = connection.execute(select(key).select_from(table)).scalar_one()
            assert found == "2019-02-14 12:00:00"


def test_a_trigger_writes_the_same_key(database: Database) -> None:
    """The expression stands in a trigger, over the row that comes, without a parameter."""
    run(
        database,
        "CREATE TABLE petitions (region VARCHAR(20) NOT NULL, id INTEGER NOT NULL, body VARCHAR(20), "
        "PRIMARY KEY (region, id))",
        "CREATE TABLE seen (row_key VARCHAR(100))",
    )
    source = inspected(database)
    dialect = dialect_for(database.engine)
    columns = [source.column(name) for name in source.primary_key]
    key = dialect.row_key(columns, as_clause(source, "new")).compile(database.engine)
    assert not key.params
    body = f"INSERT INTO seen VALUES ({key});"
    create = f"CREATE TRIGGER remember AFTER INSERT ON petitions FOR EACH ROW BEGIN {body} END"
    if database.name == "postgresql":
        code = f"$$BEGIN {body} RETURN NULL; END$$".replace(":", r"\:")
        run(database, f"CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS {code}")
        create = create.partition("BEGIN")[0] + "EXECUTE FUNCTION remember()"
    run(database, create)
    run(database, "INSERT INTO petitions VALUES ('a\"b', 7, 'x')")
    with database.engine.connect() as connection:
        seen = connection.execute(text("SELECT row_key FROM seen")).scalar_one()
    assert seen == '["a\\"b","7"]' == rows_of(database, source_of(database))[0].row_key


def test_engines_of_ours_and_of_theirs_see_the_same(database: Database) -> None:
    run(
        database,
        "CREATE TABLE petitions (at TIMESTAMP NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (at, id))",
        "INSERT INTO petitions VALUES ('2019-02-14 20:00:00', 1)",
    )
    source = Source(
        dialect_for(database.engine), inspected(database), watched_table("petitions", {"columns": {"at": 1}})
    )
    ours = open_engine(database.url)
    try:
        [[mine]] = source.pages(ours)
        [[theirs]] = source.pages(database.engine)
    finally:
        ours.dispose()
    assert mine == theirs
