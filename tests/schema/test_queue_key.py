"""Every table of ours has a key that replication accepts, and the host sees no number of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, insert, inspect, select, text

from db_dedup import Deduplicator
from db_dedup.schema.migrate import downgrade, upgrade
from db_dedup.schema.tables import our_tables
from db_dedup.store.clock import utc_now
from tests.conftest import private_server
from tests.dialects.tables import run
from tests.schema.conftest import is_current
from tests.servers import Database, Server, fresh_database, start_mariadb, start_postgresql
from tests.triggers.conftest import attached, changes, drain

TABLES = {
    "sqlite": "CREATE TABLE petitions (id INTEGER PRIMARY KEY, body VARCHAR(200))",
    "postgresql": "CREATE TABLE petitions (id SERIAL PRIMARY KEY, body VARCHAR(200))",
    "mariadb": "CREATE TABLE petitions (id INTEGER PRIMARY KEY AUTO_INCREMENT, body VARCHAR(200))",
}
LAST_NUMBER = {
    "sqlite": "SELECT last_insert_rowid()",
    "postgresql": "SELECT lastval()",
    "mariadb": "SELECT LAST_INSERT_ID()",
}
LAMP = "INSERT INTO petitions (body) VALUES ('the street lamp is broken again')"


@pytest.fixture(scope="module")
def replicating_server() -> Iterator[Server]:
    yield from private_server("postgresql", lambda: start_postgresql(wal_level="logical"))


@pytest.fixture(scope="module")
def demanding_server() -> Iterator[Server]:
    yield from private_server("mariadb", lambda: start_mariadb({"innodb-force-primary-key": "1"}))


def the_whole_way(database: Database) -> None:
    """Upgrade, scan, attach, write, work, verify, uninstall."""
    run(database, TABLES[database.name], LAMP)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    drain(dedup)
    run(database, LAMP, LAMP, "UPDATE petitions SET body = 'other' WHERE id = 1", LAMP)
    run(database, "DELETE FROM petitions WHERE id = 2")
    drain(dedup)
    assert changes(dedup) == []
    assert dedup.verify().is_right
    assert [group.size for group in dedup.groups()] == [2]
    dedup.scan(rebuild=True)
    dedup.detach()
    dedup.database.uninstall()


def test_beside_a_publication_for_all_tables(replicating_server: Server) -> None:
    with fresh_database(replicating_server) as database:
        run(database, "CREATE PUBLICATION everything FOR ALL TABLES")
        the_whole_way(database)


def test_on_a_server_that_demands_primary_keys(demanding_server: Server) -> None:
    with fresh_database(demanding_server) as database:
        the_whole_way(database)


def test_every_table_of_ours_has_a_key(database: Database) -> None:
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    tables = dedup.database.tables
    with database.engine.connect() as connection:
        for table in tables.metadata.tables.values():
            key = inspect(connection).get_pk_constraint(table.name, table.schema)["constrained_columns"]
            assert key == [column.name for column in table.primary_key] != []


def test_the_writer_s_last_number_stays_its_own(database: Database) -> None:
    """Although our triggers write into the queue after the writer's own row."""
    run(database, TABLES[database.name], "CREATE TABLE notes (id INTEGER PRIMARY KEY, body VARCHAR(200))")
    dedup = attached(database)
    noted = attached(database, "notes")
    last = text(LAST_NUMBER[database.name])
    with database.engine.begin() as connection:
        for _ in range(3):
            connection.execute(text(LAMP))
        assert connection.scalar(last) == 3
        connection.execute(text("UPDATE petitions SET body = 'other'"))
        connection.execute(text("DELETE FROM petitions WHERE id = 1"))
        assert connection.scalar(last) == 3
        if database.name != "sqlite":  # there it is the row's own number
            connection.execute(text("INSERT INTO notes VALUES (7, 'no number is made for it')"))
            assert connection.scalar(last) == 3
    assert len(changes(dedup)) == len(changes(noted)) >= 7


def test_a_queue_with_changes_is_upgraded_with_them(database: Database) -> None:
    """Also where a row has two changes of one microsecond; the triggers go on before, between and after."""
    run(database, TABLES[database.name], LAMP)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    drain(dedup)
    namespace = dedup.database.namespace
    with database.engine.begin() as connection:
        downgrade(connection, namespace, "0001")
    run(database, LAMP, LAMP)
    now = utc_now()
    old = {"table_id": 1, "row_key": "1", "queued_at": now}
    table = our_tables(namespace).change
    with database.engine.begin() as connection:
        columns = ("table_id", "row_key", "operation", "queued_at")
        rows = [old | {"operation": operation} for operation in "USU"]
        connection.execute(insert(table).values([{c: row[c] for c in columns} for row in rows]))
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        assert is_current(connection, namespace)
    # The stored settings have been through the oldest format, which knew fewer of them.
    dedup = Deduplicator(database.engine, "petitions")
    assert changes(dedup) == [("1", "S"), ("1", "U"), ("1", "U"), ("2", "I"), ("3", "I")]
    run(database, LAMP)
    drain(dedup)
    assert changes(dedup) == []
    assert dedup.verify().is_right


class PowerCutError(Exception):
    """The process ends before a statement."""


@pytest.mark.parametrize("statement", range(1, 6))
def test_an_upgrade_of_the_queue_that_broke_off_goes_on(mariadb_database: Database, statement: int) -> None:
    """Where each statement is committed at once."""
    dedup = Deduplicator(mariadb_database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    namespace = dedup.database.namespace
    with mariadb_database.engine.begin() as connection:
        downgrade(connection, namespace, "0001")
    count = iter(range(1, 99))

    def cut(_connection: Connection, _cursor: Any, sql: str, *_: Any) -> None:
        is_ours = "dedup_change" in sql and sql.startswith(("ALTER", "UPDATE"))
        if (is_ours or sql.startswith("UPDATE dedup_alembic")) and next(count) == statement:
            raise PowerCutError

    event.listen(mariadb_database.engine, "before_cursor_execute", cut)
    with pytest.raises(PowerCutError), mariadb_database.engine.begin() as connection:
        upgrade(connection, namespace)
    event.remove(mariadb_database.engine, "before_cursor_execute", cut)
    run(
        mariadb_database,
        "INSERT INTO dedup_change (table_id, row_key, operation, queued_at) VALUES (1, '1', 'U', now())",
    )
    with mariadb_database.engine.begin() as connection:
        upgrade(connection, namespace)
        assert is_current(connection, namespace)
        table = our_tables(namespace).change
        assert inspect(connection).get_pk_constraint(table.name)["constrained_columns"] == [
            column.name for column in table.primary_key
        ]
        assert connection.scalar(select(func.count()).select_from(table).where(table.c.nonce > 0)) == 1
