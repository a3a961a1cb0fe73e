"""Rows are read by their keys, and in pages, through the user's own index."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import event, select, text

from db_dedup.dialects import dialect_for
from tests.dialects.tables import (
    as_clause,
    fill,
    inspected,
    plan_of,
    rows_by_key,
    rows_of,
    run,
    source_of,
    store_keys,
)
from tests.servers import Database

INDEXED = {
    "sqlite": ["INTEGER", "VARCHAR(50)", "TEXT COLLATE NOCASE", "", "BLOB", "NUMERIC"],
    "postgresql": [
        "bigint",
        "varchar(50)",
        "text",
        "uuid",
        "timestamptz",
        "date",
        "numeric",
        'text COLLATE "POSIX"',
        'text COLLATE "und-x-icu"',
        "int4range",
    ],
    "mariadb": [
        "BIGINT",
        "INT UNSIGNED",
        "VARCHAR(50)",
        "VARCHAR(50) CHARACTER SET latin1",
        "DECIMAL(10,0)",
        "BINARY(16)",
        "CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "TIMESTAMP(6)",
    ],
}
NUMBERED = {
    "uuid": "00000000-0000-0000-0000-{:012}",
    "timestamptz": "2019-02-14 00:00:00.{:06}+00",
    "date": "2{:03}-02-14",
    "int4range": "[{0},{0}]",
    "TIMESTAMP(6)": "2019-02-14 00:00:00.00{:04}",
}


@pytest.mark.parametrize("parts", [1, 2])
def test_the_users_index_serves(database: Database, parts: int) -> None:
    for number, kind in enumerate(INDEXED[database.name]):
        name = f"petitions_{number}"
        keys = "id" if parts == 1 else "region, id"
        run(
            database,
            f"CREATE TABLE {name} (region INTEGER NOT NULL, id {kind} NOT NULL, body VARCHAR(20), "
            f"PRIMARY KEY ({keys}))",
        )
        pattern = NUMBERED.get(kind, "{:04}")
        values = [{"id": pattern.format(i)} for i in range(1000)]
        fill(database, f"INSERT INTO {name} VALUES (1, :id, 'x')", values)
        _analyse(database, name)
        source = inspected(database, name)
        dialect, table = dialect_for(database.engine), as_clause(source)
        columns = [source.column(key) for key in source.primary_key]
        key = dialect.row_key(columns, table)
        ours = store_keys(database, f"ours_{number}", select(key).select_from(table).limit(3))
        _analyse(database, ours.name)
        with database.engine.connect() as connection:
            if database.name == "postgresql":  # else it reads so small a table as a whole
                connection.execute(text("SET enable_seqscan = off"))
            listed = dialect.key_list(list(connection.execute(select(ours.c.row_key)).scalars()))
            for wanted in (ours, listed):
                matches = dialect.key_matches(columns, table, wanted.c.row_key)
                query = select(table.c.body).select_from(wanted.join(table, matches))
                plan = plan_of(connection, query)
                assert len(connection.execute(query).all()) == 3
                assert _uses_index(database.name, plan, name), (kind, plan)


@pytest.mark.parametrize("kind", ["BLOB", "TEXT", "UUID", ""])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_the_users_index_serves_blobs(sqlite_database: Database, kind: str, encoding: str) -> None:
    run(sqlite_database, f"PRAGMA encoding = '{encoding}'", f"CREATE TABLE petitions (id {kind}, body TEXT)")
    ids = [(number * 2**90 + number).to_bytes(16) for number in range(200)]
    fill(sqlite_database, "INSERT INTO petitions VALUES (:id, 'x')", [{"id": value} for value in ids])
    run(sqlite_database, "CREATE INDEX by_id ON petitions (id)", "ANALYZE")
    source = source_of(sqlite_database, key="id")
    rows = rows_of(sqlite_database, source)
    assert rows_by_key(sqlite_database, source, [row.row_key for row in rows]) == rows
    dialect, table = dialect_for(sqlite_database.engine), as_clause(inspected(sqlite_database))
    wanted = dialect.key_list([rows[7].row_key])
    matches = dialect.key_matches(source.key_columns, table, wanted.c.row_key)
    with sqlite_database.engine.connect() as connection:
        plan = plan_of(connection, select(table.c.body).select_from(wanted.join(table, matches)))
    assert "SEARCH petitions USING INDEX by_id (id=?)" in plan


def test_pages_follow_the_users_index(sqlite_database: Database) -> None:
    """Without sorting the table for each page."""
    for number, kind in enumerate(
        ["INTEGER PRIMARY KEY", "TEXT PRIMARY KEY NOT NULL", "BLOB PRIMARY KEY NOT NULL"]
    ):
        name = f"petitions_{number}"
        run(sqlite_database, f"CREATE TABLE {name} (id {kind}, body TEXT)")
        fill(sqlite_database, f"INSERT INTO {name} VALUES (:id, 'x')", [{"id": i} for i in range(100)])
        statements: list[tuple[str, Any]] = []
        event.listen(
            sqlite_database.engine,
            "before_cursor_execute",
            lambda *arguments, seen=statements: seen.append((arguments[2], arguments[3])),
        )
        assert len(rows_of(sqlite_database, source_of(sqlite_database, name), page_size=30)) == 100
        [page, *_] = [statement for statement in statements if ">=" in statement[0]]
        with sqlite_database.engine.connect() as connection:
            plan = " | ".join(
                str(row) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {page[0]}", page[1])
            )
        assert f"SEARCH {name} USING" in plan
        assert "FOR ORDER BY" not in plan


def _analyse(database: Database, name: str) -> None:
    statement = "ANALYZE TABLE" if database.name == "mariadb" else "ANALYZE"
    run(database, f"{statement} {name}")


def _uses_index(kind: str, plan: str, name: str) -> bool:
    if kind == "postgresql":
        return f"Index Scan using {name}_pkey" in plan or f"Bitmap Index Scan on {name}_pkey" in plan
    if kind == "sqlite":
        return f"SEARCH {name} USING" in plan
    # MySQL also names the partitions.
    return re.search(rf"{name} (None )?(eq_ref|ref|const|range) PRIMARY", plan) is not None
