from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from time import sleep
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, event, insert, select, text
from sqlalchemy.exc import DBAPIError

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from db_dedup.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    DedupError,
    SchemaMissingError,
)
from db_dedup.jobs.objects.attachment import AttachmentState
from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import uninstall, upgrade
from db_dedup.schema.schema_ddl import version_table
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS, CreateView, DropView
from tests.schema.description import everything
from tests.servers import Database

metadata = MetaData()
petitions = Table("petitions", metadata, Column("id", Integer, primary_key=True))
# Its name looks like one of ours.
lookalike = Table("dedup_duplicates_of_everything", metadata, Column("id", Integer, primary_key=True))


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    """A connection to a database in which a user has tables, rows and a view of their own."""
    with database.engine.connect() as connection:
        metadata.create_all(connection)
        connection.execute(insert(petitions), [{"id": 1}, {"id": 2}])
        connection.execute(CreateView("open_petitions", None, select(petitions).where(petitions.c.id > 1)))
        connection.commit()
        yield connection


def test_nothing_of_ours_stays_and_nothing_else_goes(connection: Connection, namespace: Namespace) -> None:
    before = everything(connection)
    view = namespace.name("duplicates_of_petitions")
    upgrade(connection, namespace)
    connection.execute(insert(our_tables(namespace).watched_table).values(name="petitions", definition="{}"))
    fingerprint = our_tables(namespace).fingerprint
    connection.execute(
        CreateView(
            view, namespace.schema, select(petitions).join(fingerprint, petitions.c.id == fingerprint.c.id)
        )
    )
    gone = uninstall(connection, namespace, [view, namespace.name("duplicates_of_nothing")])
    connection.commit()
    assert everything(connection) == before
    assert sorted(connection.scalars(select(petitions.c.id))) == [1, 2]
    assert {
        view,
        version_table(namespace).name,
        namespace.name("duplicate_pairs"),
        namespace.name("pair"),
    } <= set(gone)
    assert len(gone) == len(our_tables(namespace).metadata.tables) + len(FIXED_VIEWS) + 2
    assert uninstall(connection, namespace) == []


def test_where_we_never_were_nothing_goes(connection: Connection, namespace: Namespace) -> None:
    Table(Namespace(None, "dedup_").name("pair"), MetaData(), Column("id", Integer)).create(connection)
    if namespace.schema:
        connection.execute(text(f"CREATE SCHEMA {namespace.schema}"))
    before = everything(connection)
    assert uninstall(connection, namespace, ["open_petitions", "dedup_duplicates_of_everything"]) == []
    assert everything(connection) == before


def test_half_an_installation_goes_too(connection: Connection, namespace: Namespace) -> None:
    before = everything(connection)
    upgrade(connection, namespace)
    connection.execute(version_table(namespace).delete())
    tables = our_tables(namespace)
    connection.execute(DropView(namespace.name("queue_lag"), namespace.schema))
    for table in (tables.scan, tables.change):
        table.drop(connection)
    uninstall(connection, namespace)
    assert everything(connection) == before


@pytest.mark.parametrize("revision", [None, "1975ea83b712"])
@pytest.mark.parametrize("base", ["reservation", "queue_lag"])
def test_tables_of_the_host_with_our_names_stay(
    connection: Connection, namespace: Namespace, base: str, revision: str | None
) -> None:
    """Where both share a schema or a prefix, the version table may be that of the host's Alembic."""
    namespace = Namespace("public", "") if namespace.schema else namespace
    version = version_table(namespace)
    version.create(connection)
    if revision:
        connection.execute(insert(version).values(version_num=revision))
    host = Table(
        namespace.name(base), MetaData(), Column("id", Integer, primary_key=True), Column("seat", Integer)
    )
    host.create(connection)
    connection.execute(insert(host).values(id=1, seat=7))
    connection.commit()
    before = everything(connection)
    for change in (uninstall, upgrade):
        with suppress(ConfigError, SchemaMissingError):
            change(connection, namespace)
        connection.commit()
        assert everything(connection) == before
    assert connection.scalars(select(host.c.seat)).all() == [7]


def test_an_empty_host_s_table_stays_where_ddl_is_committed(mariadb_or_mysql: Database) -> None:
    namespace = Namespace(None, "app_")
    host = Table(namespace.name("scan"), MetaData(), Column("page", Integer))
    with mariadb_or_mysql.engine.begin() as connection:
        version_table(namespace).create(connection)
        host.create(connection)
        before = everything(connection)
        for change in (upgrade, uninstall):
            with pytest.raises(ConfigError, match="app_scan is there already"):
                change(connection, namespace)
            assert everything(connection) == before


def test_a_view_of_the_user_s_on_ours_stops_it(postgresql_database: Database) -> None:
    namespace = Namespace("dedup", "")
    tables = our_tables(namespace)
    with postgresql_database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(CreateView("my_pairs", "public", select(tables.pair)))
        before = everything(connection)
    with pytest.raises(DBAPIError, match="depends on"), postgresql_database.engine.begin() as connection:
        uninstall(connection, namespace)
    with pytest.raises(DatabaseError, match=r"drop or change these first \(view my_pairs depends on"):
        OurDatabase(postgresql_database.engine).uninstall()
    with postgresql_database.engine.begin() as connection:
        assert everything(connection) == before


def test_a_schema_with_something_in_it_stays(postgresql_database: Database) -> None:
    namespace = Namespace("dedup", "")
    with postgresql_database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(text("CREATE TABLE dedup.notes (id integer)"))
        uninstall(connection, namespace)
        found = {row[1:] for row in everything(connection) if "dedup" in row}
    assert ("dedup",) in found
    assert ("dedup", "notes") in found


def test_a_schema_that_was_there_before_stays(postgresql_database: Database) -> None:
    """Its owner may have set rights on it. Making the tables then needs no right to make schemas."""
    namespace = Namespace("dedup", "")
    with postgresql_database.engine.begin() as connection:
        connection.execute(text("CREATE ROLE clerk"))
        connection.execute(text("CREATE SCHEMA dedup AUTHORIZATION clerk"))
        before = everything(connection)
        connection.execute(text("SET LOCAL ROLE clerk"))
        upgrade(connection, namespace)
        uninstall(connection, namespace)
        assert everything(connection) == before
        connection.execute(text("RESET ROLE"))
        connection.execute(text("DROP SCHEMA dedup"))
        connection.execute(text("DROP ROLE clerk"))


def test_a_view_goes_whose_maker_was_killed(
    mariadb_or_mysql: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where DDL is committed, the view stays, and what comes after it is not stored."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with mariadb_or_mysql.engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INT PRIMARY KEY, body VARCHAR(90))"))
        before = everything(connection)
    dedup = Deduplicator(mariadb_or_mysql.engine, "notes", {"body": 1})
    dedup.upgrade()
    monkeypatch.setattr("db_dedup.store.watched_tables.set_view", killed)
    with pytest.raises(KeyboardInterrupt):
        dedup.scan()
    assert "dedup_duplicates_of_notes" in dedup.database.uninstall()
    with mariadb_or_mysql.engine.begin() as connection:
        assert everything(connection) == before


def test_a_table_with_the_name_of_a_view_stays(mariadb_or_mysql: Database) -> None:
    with mariadb_or_mysql.engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INT PRIMARY KEY, body VARCHAR(90))"))
        connection.execute(text("CREATE TABLE dedup_duplicates_of_notes (id INT PRIMARY KEY)"))
        before = everything(connection)
    dedup = Deduplicator(mariadb_or_mysql.engine, "notes", {"body": 1})
    dedup.upgrade()
    with pytest.raises(DatabaseError, match="already exists"):
        dedup.scan()
    assert "dedup_duplicates_of_notes" not in dedup.database.installed_names()
    dedup.database.uninstall()
    with mariadb_or_mysql.engine.begin() as connection:
        assert everything(connection) == before


WAITING = text("""
    SELECT COUNT(*) FROM information_schema.processlist
    LEFT JOIN information_schema.innodb_trx ON trx_mysql_thread_id = id
    WHERE db = DATABASE()
    AND (state = 'User lock' OR state LIKE 'Waiting for%lock' OR trx_state = 'LOCK WAIT')
""")


def test_a_worker_makes_no_triggers_between_theirs_and_our_tables_end(mariadb_or_mysql: Database) -> None:
    """Where each DROP is committed at once, a worker that waits for the lock would make them again."""
    database = mariadb_or_mysql
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INT PRIMARY KEY, body VARCHAR(90))"))
    dedup, other = (Deduplicator(database.url, "notes", {"body": 1}) for _ in range(2))
    dedup.upgrade()
    dedup.scan()
    dedup.attach()
    refusals: list[DedupError] = []

    def attach() -> None:
        try:
            other.attach()
        except DedupError as error:
            refusals.append(error)

    worker = Thread(target=attach)

    def begin(_connection: Connection, _cursor: Any, sql: str, *_: Any) -> None:
        if sql.startswith("DROP TRIGGER") and worker.ident is None:
            worker.start()
            with database.engine.connect() as watching:
                while worker.is_alive() and not watching.scalar(WAITING):
                    watching.rollback()
                    sleep(0.02)

    event.listen(dedup.database.engine, "before_cursor_execute", begin)
    try:
        dedup.database.uninstall()
        is_uninstalled = True
    except DatabaseUnavailableError:
        is_uninstalled = False
    worker.join(60)
    assert worker.ident is not None
    assert not worker.is_alive()
    if is_uninstalled:
        assert refusals
        with database.engine.connect() as connection:
            assert connection.execute(text("SHOW TRIGGERS")).all() == []
    else:  # the server let the other one go first
        assert refusals == []
        assert other.trigger_state().state is AttachmentState.INTACT
    with database.engine.begin() as connection:
        connection.execute(text("INSERT INTO notes VALUES (1, 'perhaps nobody queues it')"))
    dedup.database.close()
    other.database.close()
