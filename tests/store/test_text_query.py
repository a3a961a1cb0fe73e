"""The query of texts, which other machines read, gives the rows that our own driver gives."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from db_dedup.dialects import open_engine
from db_dedup.errors import ConfigError
from db_dedup.records import SourceRow
from db_dedup.store.source import Source
from db_dedup.store.text_query import TextQuery, text_query
from tests.dialects.tables import fill, rows_of, run, source_of
from tests.servers import Database
from tests.store.test_source_values import MARIADB_VALUES, POSTGRESQL_VALUES

MORE = {
    "postgresql": [
        ("double precision", "'1e300'"),
        ("double precision", "'-Infinity'"),
        ("real", "'1e-9'"),
        ("bigint", "-9223372036854775808"),
        ("numeric", "'-0.000'"),
        ("date", "'0044-03-15 BC'"),
        ("interval", "'1 day 02:03:04'"),
        ("money", "'12.30'"),
        ("timetz", "'20:00+08'"),
        ("bit varying(8)", "'0101'"),
    ],
    "mariadb": [
        ("BIGINT UNSIGNED", "18446744073709551615"),
        ("DOUBLE", "1e300"),
        ("DOUBLE", "-1e-9"),
        ("DECIMAL(30,10)", "-0.0000000001"),
        ("YEAR", "2024"),
        ("TIME(6)", "'20:00:00.5'"),
        ("TIME", "'838:59:59'"),
        ("TIME(2)", "'100:00:00.5'"),
        ("TIME(6)", "'-01:00:00'"),
        ("TIME(3)", "'-00:00:00.25'"),
        ("BINARY(4)", "x'0102'"),
        ("CHAR(9)", "'ab '"),
        ("TEXT CHARACTER SET gbk", "'拆迁'"),
        ("DATETIME", "'0000-00-00 00:00:00'"),
    ],
}


def read(database: Database, query: TextQuery, condition: str | None = None) -> list[SourceRow]:
    """Read the query as Spark does: as a table in brackets, with a condition on its columns."""
    engine = open_engine(database.url)
    statement = f"SELECT {', '.join(query.names)} FROM ({query.sql}) dedup_texts"
    if condition is not None:
        statement += f" WHERE {condition}"
    with closing(engine.raw_connection()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        raw = [list(row) for row in cursor.fetchall()]
    engine.dispose()
    assert all(isinstance(value, str | None) for row in raw for value in row)
    if not query.has_order:
        for row in raw:
            row.insert(1, None)
    return query.texts.rows([row for row in raw if row[0] is not None])


def queried(database: Database, source: Source, parts: int = 1) -> TextQuery:
    return text_query(source, database.engine, parts)


@pytest.mark.parametrize(
    ("name", "kind", "literal"),
    [
        *(("postgresql", kind, literal) for kind, literal, _ in POSTGRESQL_VALUES),
        *(("mariadb", kind, literal) for kind, literal, _ in MARIADB_VALUES),
        *((name, *value) for name, values in MORE.items() for value in values),
    ],
)
def test_values_are_those_of_our_driver(
    request: pytest.FixtureRequest, name: str, kind: str, literal: str
) -> None:
    database: Database = request.getfixturevalue(f"{name}_database")
    escaped = literal.replace(":", r"\:")
    first = {
        "postgresql": "CREATE TYPE mood AS ENUM ('calm', 'angry')",
        "mariadb": "SET SESSION sql_mode = ''",
    }
    run(
        database,
        first[name],
        f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, body {kind}, agreed {kind})",
        f"INSERT INTO petitions VALUES (1, {escaped}, {escaped}), (2, NULL, NULL)",
    )
    source = source_of(database, order="body", within="agreed")
    assert sorted(read(database, queried(database, source))) == sorted(rows_of(database, source))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INTEGER", [-5, 0, 3, 10, 11, 200, 3000]),
        ("NUMERIC(9,2)", ["-1.50", "0", "2.25", "100", "1000"]),
        ("VARCHAR(20)", ["", "a", "A", "b'c", r"b\c", "ä", "拆", "100", "20", "é"]),
    ],
)
@pytest.mark.parametrize("name", ["postgresql", "mariadb"])
def test_each_row_is_in_one_part(
    request: pytest.FixtureRequest, name: str, kind: str, values: list[Any]
) -> None:
    database: Database = request.getfixturevalue(f"{name}_database")
    collation = " COLLATE utf8mb4_bin" if name == "mariadb" and kind.startswith("V") else ""
    run(database, f"CREATE TABLE petitions (id {kind}{collation} PRIMARY KEY, body VARCHAR(20))")
    fill(database, "INSERT INTO petitions VALUES (:id, '路灯')", [{"id": value} for value in values])
    source = source_of(database)
    query = queried(database, source, 4)
    assert len(query.parts) > 2
    rows = [row for part in query.parts for row in read(database, query, part)]
    assert sorted(rows) == sorted(rows_of(database, source))


def test_a_part_of_a_composite_key_and_a_condition(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (office VARCHAR(9), id INTEGER, body VARCHAR(20), region VARCHAR(9))",
        *(f"INSERT INTO petitions VALUES ('市', {i}, '路灯 %d? {i}', '历下') " for i in range(40)),
        "INSERT INTO petitions VALUES (NULL, 1, '没有键', '历下'), ('市', NULL, '没有键', '历下')",
    )
    source = source_of(
        postgresql_database, key=("office", "id"), where="body LIKE '路灯 \\%d? %' OR id IS NULL"
    )
    query = queried(postgresql_database, source, 4)
    assert len(query.parts) == 4, "by the column with the most values"
    rows = [row for part in query.parts for row in read(postgresql_database, query, part)]
    assert sorted(rows) == sorted(rows_of(postgresql_database, source))
    assert len(rows) == 40


def test_a_key_that_must_be_checked_is_refused(postgresql_database: Database) -> None:
    run(postgresql_database, "CREATE TABLE petitions (id inet PRIMARY KEY, body VARCHAR(20))")
    with pytest.raises(ConfigError, match="scan with it, or name another key"):
        queried(postgresql_database, source_of(postgresql_database))


def test_a_column_without_text_is_refused(mariadb_or_mysql: Database) -> None:
    """MariaDB has no text of a point; MySQL returns NULL, and the rows would have no place at all."""
    run(
        mariadb_or_mysql,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(20), place POINT)",
        "INSERT INTO petitions VALUES (1, '路灯', ST_GeomFromText('POINT(116.4 39.9)')), (2, '路灯', NULL)",
    )
    assert queried(mariadb_or_mysql, source_of(mariadb_or_mysql))
    for way in ({"columns": {"body": 1, "place": 1}}, {"within": "place"}):
        with pytest.raises(ConfigError, match=r"column 'place'.* scan with it, or leave the column out"):
            queried(mariadb_or_mysql, source_of(mariadb_or_mysql, **way))


def test_a_column_of_an_unknown_type_with_text_is_read(mariadb_database: Database) -> None:
    run(
        mariadb_database,
        "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(20), address INET6)",
        "INSERT INTO petitions VALUES (1, '路灯', '::1'), (2, '路灯', NULL)",
    )
    source = source_of(mariadb_database, columns={"body": 1, "address": 1})
    assert sorted(read(mariadb_database, queried(mariadb_database, source))) == sorted(
        rows_of(mariadb_database, source)
    )


def test_an_operator_with_a_question_mark_is_refused(postgresql_database: Database) -> None:
    """The driver of Java takes it for a parameter."""
    run(
        postgresql_database,
        "CREATE TABLE q (id int PRIMARY KEY, body text, tags jsonb)",
        """INSERT INTO q VALUES (1, 'a', '["urgent"]'), (2, 'b', '[]')""",
    )
    conditions = {"tags ? 'urgent'": [], "body <> 'it''s ?'": ["1", "2"], "jsonb_exists(tags, '?')": []}
    for where, found in conditions.items():
        source = source_of(postgresql_database, "q", columns={"body": 1}, where=where)
        if where.startswith("tags"):
            with pytest.raises(ConfigError, match="operator with a question mark"):
                queried(postgresql_database, source)
        else:
            rows = read(postgresql_database, queried(postgresql_database, source))
            assert sorted(row.row_key for row in rows) == found
