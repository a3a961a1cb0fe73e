"""The user's rows as the flow gets them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import event, text

from db_dedup.config import watched_table
from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import ConfigError, RowKeyError, UnknownNameError
from db_dedup.records import SourceRow
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from tests.dialects.tables import fill, rows_by_key, rows_of, run, source_of
from tests.servers import Database
from tests.thorough import quick_first

PETITIONS = (
    "CREATE TABLE petitions (id INTEGER NOT NULL PRIMARY KEY, title VARCHAR(100), body TEXT, "
    "region VARCHAR(20), created_at {moment})"
)
MOMENTS = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP", "mariadb": "DATETIME"}
INSERT = "INSERT INTO petitions VALUES (:id, :title, :body, :region, :created_at)"


def make_petitions(database: Database, rows: Iterable[dict[str, Any]] = ()) -> None:
    run(database, PETITIONS.format(moment=MOMENTS[database.name]))
    if rows:
        fill(database, INSERT, rows)


def petition(number: int, **values: Any) -> dict[str, Any]:
    return {
        "id": number,
        "title": f"第{number}",
        "body": "暖气不热",
        "region": "历下",
        "created_at": "2019-02-14 20:00:00",
    } | values


def test_a_row(database: Database) -> None:
    make_petitions(database, [petition(1), petition(2, title=None, body=None, created_at=None)])
    source = source_of(database, columns={"title": 2, "body": 1}, order="created_at")
    assert rows_of(database, source) == [
        SourceRow("1", "2019-02-14 20:00:00.000000", ("第1", "暖气不热"), None),
        SourceRow("2", None, ("", ""), None),
    ]
    assert source.value_names == ("title", "body")
    assert [column.name for column in source.key_columns] == ["id"]


def test_an_empty_table(database: Database) -> None:
    make_petitions(database)
    source = source_of(database)
    assert rows_of(database, source) == []
    assert rows_by_key(database, source, ["1"]) == []
    assert rows_by_key(database, source, []) == []


@pytest.mark.parametrize("page_size", [1, 7, 50, 51, 1000])
def test_pages_are_one_query_cut_up(database: Database, page_size: int) -> None:
    make_petitions(database, [petition(i) for i in range(-25, 25)])
    source = source_of(database)
    pages = list(source.pages(database.engine, page_size))
    assert all(len(page) <= page_size for page in pages)
    assert sorted(int(row.row_key) for page in pages for row in page) == list(range(-25, 25))


@pytest.mark.parametrize("page_size", [1, 3, 100])
def test_pages_by_a_composite_key(database: Database, page_size: int) -> None:
    run(
        database,
        "CREATE TABLE petitions (region VARCHAR(20) NOT NULL, day DATE NOT NULL, number INTEGER NOT NULL, "
        "body TEXT, PRIMARY KEY (region, day, number))",
    )
    keys = [
        {"region": region, "day": day, "number": number}
        for region in ("历下", "a", "B", "")
        for day in ("2019-02-14", "2019-02-15")
        for number in (-1, 0, 2)
    ]
    fill(database, "INSERT INTO petitions VALUES (:region, :day, :number, 'x')", keys)
    source = source_of(database)
    dialect = dialect_for(database.engine)
    pages = source.read_keyset_pages(lambda: dialect.read_snapshot(database.engine), page_size)
    found = [row.row_key for page in pages for row in page]
    assert len(found) == len(keys)
    assert set(found) == {row.row_key for row in rows_of(database, source)}


def test_sqlite_keys_of_every_storage_class(sqlite_database: Database) -> None:
    run(sqlite_database, "CREATE TABLE petitions (id PRIMARY KEY, body TEXT)")
    run(sqlite_database, *(f"INSERT INTO petitions VALUES ({key}, 'x')" for key in SQLITE_KEYS))
    source = source_of(sqlite_database)
    rows = rows_of(sqlite_database, source, page_size=2)
    assert [row.row_key for row in rows] == ["-3", "2", "10", "", "abc", "拆迁", "x'ff'"]
    assert source.rows_without_key == 2


SQLITE_KEYS = ["10", "2", "-3", "'abc'", "'拆迁'", "''", "x'ff'", "NULL", "NULL"]


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
@pytest.mark.parametrize("page_size", [1, 2, 100])
def test_rows_without_a_key_are_counted(sqlite_database: Database, page_size: int, journal_mode: str) -> None:
    run(
        sqlite_database,
        f"PRAGMA journal_mode = {journal_mode}",
        "CREATE TABLE petitions (region TEXT, id TEXT, body TEXT, PRIMARY KEY (region, id))",
        "INSERT INTO petitions VALUES (NULL, 'a', 'x'), ('r', NULL, 'x'), ('r', 'b', 'x'), (NULL, NULL, 'x')",
    )
    source = source_of(sqlite_database)
    rows = rows_of(sqlite_database, source, page_size)
    assert [row.row_key for row in rows] == ['["r","b"]']
    assert source.rows_without_key == 3


def test_streaming_counts_rows_without_a_key(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (id INTEGER, body TEXT)",
        "INSERT INTO petitions VALUES (1, 'x'), (NULL, 'x')",
    )
    source = source_of(postgresql_database, key="id")
    assert [row.row_key for row in rows_of(postgresql_database, source)] == ["1"]
    assert source.rows_without_key == 1


def test_sqlite_in_wal_mode_streams(sqlite_database: Database) -> None:
    make_petitions(sqlite_database)
    run(sqlite_database, "PRAGMA journal_mode = wal")
    fill(sqlite_database, INSERT, [petition(i) for i in range(20)])
    statements: list[str] = []
    event.listen(
        sqlite_database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2])
    )
    source = source_of(sqlite_database)
    assert len(rows_of(sqlite_database, source, page_size=3)) == 20
    assert sum('FROM "petitions"' in statement for statement in statements) == 1


def test_writes_of_ours_between_two_pages(database: Database) -> None:
    make_petitions(database, [petition(i) for i in range(20)])
    run(database, "CREATE TABLE ours (a INTEGER)")
    dialect = dialect_for(database.engine)
    engine = open_engine(database.url)
    seen = 0
    for page in source_of(database).pages(engine, 3):
        seen += len(page)
        with dialect.write_transaction(engine) as connection:
            connection.execute(text("INSERT INTO ours VALUES (1)"))
    engine.dispose()
    assert seen == 20


def test_leaving_early_frees_the_connection(database: Database) -> None:
    make_petitions(database, [petition(i) for i in range(20)])
    pages = source_of(database).pages(database.engine, 3)
    next(pages)
    pages.close()
    run(database, "DROP TABLE petitions")


CONDITIONS = [
    "region = '历下'",
    "title LIKE '% :name%' OR region = '历下' -- everything else is old",
    "petitions.region = '历下' AND created_at < '2019-02-14 21:30:00'",
    "title LIKE '100%'\nOR region = '历下'",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_where(database: Database, where: str) -> None:
    make_petitions(database, [petition(1), petition(2, region="市中"), petition(3)])
    source = source_of(database, where=where)
    assert [row.row_key for row in rows_of(database, source)] == ["1", "3"]
    assert [row.row_key for row in rows_by_key(database, source, ["1", "2"])] == ["1"]
    with database.engine.connect() as connection:
        assert source.count(connection) == 2


def test_count(database: Database) -> None:
    make_petitions(database, [petition(i) for i in range(5)])
    with database.engine.connect() as connection:
        assert source_of(database).count(connection) == 5


def test_read_rows_takes_more_keys_than_one_query(database: Database) -> None:
    make_petitions(database, [petition(i) for i in range(0, 2400, 2)])
    rows = rows_by_key(database, source_of(database), [str(i) for i in range(2400)])
    assert sorted(int(row.row_key) for row in rows) == list(range(0, 2400, 2))


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        ([], None),
        (["region"], '["历下"]'),
        ([{"column": "created_at", "by": "day"}], '["2019-02-14"]'),
        ([{"column": "created_at", "by": "month"}, "region"], '["2019-02","历下"]'),
        ([{"column": "created_at", "by": "year"}], '["2019"]'),
        (["created_at"], '["2019-02-14 20:00:00"]'),
        ([{"column": "title", "by": "month"}], '["2020-05"]'),
        (["body"], '[""]'),
    ],
)
def test_within(database: Database, within: list[Any], expected: str | None) -> None:
    make_petitions(database, [petition(1, region=" 历下 ", title="2020-05-06", body=None)])
    [row] = rows_of(database, source_of(database, within=within))
    assert row.within == expected
    assert rows_by_key(database, source_of(database, within=within), ["1"]) == [row]


@pytest.mark.parametrize(("by", "count"), [("day", 4), ("month", 3), ("year", 3), ("value", 5)])
def test_within_days_of_any_era(postgresql_database: Database, by: str, count: int) -> None:
    run(
        postgresql_database,
        "CREATE TABLE petitions (id integer PRIMARY KEY, body text, at timestamp)",
        "INSERT INTO petitions VALUES (1, 'x', '0044-03-15'), (2, 'x', '0044-03-15 BC'), "
        "(3, 'x', '12019-10-11 20:00'), (4, 'x', '12019-10-12 20:00'), (5, 'x', '12019-10-12 21:00')",
    )
    source = source_of(postgresql_database, within=[{"column": "at", "by": by}], order="at")
    rows = rows_of(postgresql_database, source)
    assert len({row.within for row in rows}) == count
    in_order = sorted(rows, key=lambda row: row.order_value or "")
    assert [row.row_key for row in in_order] == ["2", "1", "3", "4", "5"]


def test_a_record_that_is_not_stored(database: Database) -> None:
    make_petitions(database, [petition(1)])
    source = source_of(database, columns={"title": 1, "body": 1, "created_at": 1}, within=["region"])
    [stored] = rows_of(database, source)
    record = petition(1, created_at="2019-02-14T20:00:00")
    with database.engine.connect() as connection:
        assert source.rows_from(connection, [record])[0] == SourceRow("", None, stored.values, stored.within)
        assert source.rows_from(connection, [{}])[0].values == ("", "", "")
        with pytest.raises(UnknownNameError, match="tittle"):
            source.rows_from(connection, [{"tittle": "x"}])[0]


DAYS_AND_MOMENTS = [
    datetime(2019, 2, 14, 20),
    date(2019, 2, 14),
    "2019-02-14 20:00:00",
    "2019-02-14",
    None,
]
WITH_ZONE = datetime(2019, 2, 14, 23, tzinfo=timezone(timedelta(hours=-8)))
"""Its date in PostgreSQL depends on the time zone of the session."""


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("kind", ["DATE", "moment"])
def test_a_date_that_is_not_of_its_columns_type(database: Database, kind: str) -> None:
    """It is compared as the database would store it."""
    type_name = MOMENTS[database.name] if kind == "moment" else kind
    has_zone = kind == "DATE" and database.name == "mariadb"
    given = [*DAYS_AND_MOMENTS, *([WITH_ZONE] if has_zone else [])]
    run(database, f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, body {type_name}, at {type_name})")
    rows = [{"id": i, "at": value} for i, value in enumerate(given)]
    fill(database, "INSERT INTO petitions VALUES (:id, :at, :at)", rows)
    for by in ("value", "day"):
        source = source_of(database, within=[{"column": "at", "by": by}])
        stored = [(row.values, row.within) for row in rows_of(database, source)]
        assert len(set(stored)) == (2 if kind == "DATE" else 3)
        with database.engine.connect() as connection:
            records = source.rows_from(connection, [{"body": value, "at": value} for value in given])
        assert [(row.values, row.within) for row in records] == stored


def test_key_that_is_too_long(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id VARCHAR(760) NOT NULL PRIMARY KEY, body TEXT)")
    fill(database, "INSERT INTO petitions VALUES (:id, 'x')", [{"id": "键" * 700}])
    source = source_of(database)
    assert [row.row_key for row in rows_of(database, source)] == ["键" * 700]
    fill(database, "INSERT INTO petitions VALUES (:id, 'x')", [{"id": "key-" * 176}])
    with pytest.raises(RowKeyError, match=r"704 characters, more than the 700.*'(key-){10}'"):
        rows_of(database, source)


ODD_NAMES = [
    'say "it"',
    "back`tick",
    "order",
    "申诉",
    "50% off",
    "a:b",
    "two words",
    "Capital",
    "it's",
    "a.b",
    "%(x)s",
    "[1]",
]


@pytest.mark.parametrize("name", quick_first(ODD_NAMES))
def test_odd_names(database: Database, name: str) -> None:
    if database.name == "mariadb":
        name = name.replace("`", "'")  # SQLAlchemy reads a backtick in a column's name as two
    preparer = database.engine.dialect.identifier_preparer
    quoted = preparer.quote_identifier(name)
    with database.engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE TABLE {quoted} ({quoted} INTEGER NOT NULL PRIMARY KEY, body VARCHAR(20))", ()
        )
        connection.exec_driver_sql(f"INSERT INTO {quoted} VALUES (7, 'x')", ())
    source = source_of(database, name, columns={"body": 1, name: 1}, order=name, within=[name])
    rows = rows_of(database, source)
    assert [(row.row_key, row.values) for row in rows] == [("7", ("x", "7"))]
    assert rows_by_key(database, source, ["7"]) == rows
    with database.engine.connect() as connection:
        assert source.count(connection) == 1


def test_names_that_differ_only_in_case(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        'CREATE TABLE petitions (id INTEGER PRIMARY KEY, "Body" TEXT, body TEXT)',
        "INSERT INTO petitions VALUES (1, 'upper', 'lower')",
    )
    [row] = rows_of(postgresql_database, source_of(postgresql_database, columns={"body": 1, "Body": 1}))
    assert row.values == ("lower", "upper")


def test_a_view_can_be_read(database: Database) -> None:
    make_petitions(database, [petition(i) for i in range(4)])
    run(database, "CREATE VIEW recent AS SELECT id, title AS body FROM petitions WHERE id > 1")
    source = source_of(database, "recent", key="id")
    rows = rows_of(database, source)
    assert sorted(row.row_key for row in rows) == ["2", "3"]
    assert sorted(row.row_key for row in rows_by_key(database, source, ["1", "2", "3"])) == ["2", "3"]


def test_table_in_another_schema(postgresql_database: Database) -> None:
    run(
        postgresql_database,
        'CREATE SCHEMA "the office"',
        'CREATE TABLE "the office".petitions (id INTEGER PRIMARY KEY, body TEXT)',
        "INSERT INTO \"the office\".petitions VALUES (1, 'x')",
    )
    with postgresql_database.engine.connect() as connection:
        table = inspect_table(connection, "petitions", "the office")
    watched = watched_table("petitions", {"columns": {"body": 1}, "schema": "the office"})
    source = Source(dialect_for(postgresql_database.engine), table, watched)
    rows = rows_of(postgresql_database, source)
    assert [row.values for row in rows] == [("x",)]
    assert rows_by_key(postgresql_database, source, ["1"]) == rows


def test_what_is_missing_is_said_at_once(database: Database) -> None:
    run(database, "CREATE TABLE petitions (id INTEGER, body TEXT)")
    with pytest.raises(UnknownNameError, match="bodies"):
        source_of(database, columns={"bodies": 1})
    with pytest.raises(ConfigError, match="no primary key"):
        source_of(database)
