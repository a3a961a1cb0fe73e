"""Names as users have them, in tables, columns and schemas: scan, view, pairs, check and the printed SQL."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, insert, inspect, text
from sqlalchemy.schema import CreateSchema, DropSchema

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from tests.servers import Database

SAME = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请尽快处理。"
NEAR = "楼下烧烤店每天深夜油烟很大，孩子无法入睡，多次投诉没有人管，请赶快处理。"
ODD = ("a.b.c", "%(p)s 50%%", "::a:b", "b`a``c`", "semi;-- /*", "back\\slash", "[x] {y}", "👍 投诉")
SERVERS = ("postgresql", "mariadb", "mysql")
LONG = ("x" * 63, "长" * 21)


def possible(names: Iterable[str], databases: Iterable[str]) -> list[tuple[str, str]]:
    """Each database with the names that it allows: those of MariaDB and MySQL end at U+FFFF."""
    return [
        (database, name)
        for database in databases
        for name in names
        if database not in ("mariadb", "mysql") or max(name) <= "\uffff"
    ]


def petitions(
    name: str, body: str = "body", key: str = "id", more: tuple[str, ...] = (), schema: str | None = None
) -> Table:
    """A table whose first two columns are its key and its text."""
    columns: list[Column[Any]] = [
        Column(key, Integer, primary_key=True, autoincrement=False),
        Column(body, Text),
    ]
    columns += [Column(column, Text) for column in more]
    return Table(name, MetaData(), *columns, schema=schema)


def make(engine: Engine, table: Table) -> None:
    key, body = (column.name for column in list(table.columns)[:2])
    with engine.begin() as connection:
        table.create(connection)
        connection.execute(insert(table), [{key: i, body: b} for i, b in enumerate((SAME, NEAR, SAME, None))])


def assert_works(engine: Engine, table: Table, **options: Any) -> Deduplicator:
    """Every way of reading the answer; the view also as the printed SQL makes it."""
    key, body = (column.name for column in list(table.columns)[:2])
    dedup = Deduplicator(engine, table.name, {body: 1}, order=key, **options)
    dedup.upgrade()
    report = dedup.scan()
    assert (report.rows, report.copies, report.pairs) == (4, 1, 1)
    assert len(list(dedup.pairs(expand=True))) == 3
    assert {match.row_key for match in dedup.check({body: NEAR})} == {"0", "1", "2"}
    assert dedup.explain("0", "1").stored
    with engine.begin() as connection:
        cursor = connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
        for statement in dedup.view_statements():
            cursor.execute(statement)  # as psql or mariadb would send it
        cursor.execute(f"SELECT * FROM {view(dedup, table.name)}")
        assert len(cursor.fetchall()) == 3
        cursor.close()
    return dedup


def view(dedup: Deduplicator, name: str) -> str:
    """The quoted name of a table's view, as the database has it."""
    schema, quote = dedup.database.namespace.schema, dedup.database.engine.dialect.identifier_preparer
    with dedup.database.engine.connect() as connection:
        query = dedup.database.tables.watched_table.select().where(
            dedup.database.tables.watched_table.c.name == name
        )
        stored = connection.execute(query).one().view_name
        assert stored in inspect(connection).get_view_names(schema)
    quoted = str(quote.quote_identifier(stored)).replace("%%", "%" if quote._double_percents else "%%")
    return f"{schema}.{quoted}" if schema else quoted


@pytest.mark.parametrize(("database", "name"), possible(ODD, ["sqlite", *SERVERS]), indirect=["database"])
def test_an_odd_name(database: Database, name: str) -> None:
    table = petitions(name, f"{name}2", f"{name}1")
    make(database.engine, table)
    assert_works(database.engine, table).database.uninstall()


@pytest.mark.parametrize("name", LONG)
def test_a_long_name_and_another_that_begins_alike(database: Database, name: str) -> None:
    """Both are cut in the names of their views, and stay apart."""
    first, second = petitions(name, name, name[:-1]), petitions(name[:-1] + "y", name)
    for table in (first, second):
        make(database.engine, table)
        dedup = assert_works(database.engine, table)
    assert view(dedup, first.name) != view(dedup, second.name)
    dedup.database.uninstall()
    with database.engine.connect() as connection:
        assert {first.name, second.name} == set(inspect(connection).get_table_names())
        assert inspect(connection).get_view_names() == []


@pytest.mark.parametrize("database", SERVERS, indirect=True)
def test_tables_that_differ_only_in_case(database: Database) -> None:
    tables = [petitions("Petitions", "Body"), petitions("petitions", "body", more=("Title",))]
    for table in tables:
        make(database.engine, table)
    for table in tables:
        dedup = assert_works(database.engine, table)
    assert view(dedup, "Petitions") != view(dedup, "petitions")


def test_columns_that_clash_with_ours(database: Database) -> None:
    more = ("GROUP_SIZE", "own_group_id", "is_representative", "member", "first")
    table = petitions("petitions", "group_id", "row_key", more)
    make(database.engine, table)
    dedup = assert_works(database.engine, table)
    with database.engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {view(dedup, 'petitions')}"))
        assert list(found.keys()) == [
            "group_id", "group_size", "is_representative", "row_key", "own_own_group_id", "own_GROUP_SIZE",
            "own_group_id", "own_is_representative", "member", "first",
        ]  # fmt: skip


def test_columns_that_differ_only_in_case(postgresql_database: Database) -> None:
    table = petitions("petitions", "GROUP_ID", "ID", ("group_id", "id"))
    make(postgresql_database.engine, table)
    assert_works(postgresql_database.engine, table)


@pytest.mark.parametrize(("database", "name"), possible([*ODD, LONG[1]], SERVERS), indirect=["database"])
def test_an_odd_schema(database: Database, name: str) -> None:
    """Of the user's table; on MariaDB a schema is another database on the same server."""
    with schema_of_user(database.engine, name):
        table = petitions("petitions", schema=name)
        make(database.engine, table)
        assert_works(database.engine, table, schema=name).database.uninstall()


@contextmanager
def schema_of_user(engine: Engine, name: str) -> Iterator[None]:
    with engine.begin() as connection:
        connection.execute(CreateSchema(name))
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(DropSchema(name, cascade=engine.dialect.name == "postgresql"))


@pytest.mark.parametrize("name", ['q"%u`o: ta.b', "长" * 21])
def test_an_odd_schema_or_prefix_of_ours(database: Database, name: str) -> None:
    make(database.engine, petitions("petitions"))
    ours = OurDatabase(database.engine, name, name)
    dedup = Deduplicator(ours, "petitions", {"body": 1})
    dedup.upgrade()
    assert dedup.scan().pairs == 1
    assert len(dedup.check({"body": NEAR})) == 3
    assert len(list(dedup.pairs())) == 2
    ours.uninstall()
