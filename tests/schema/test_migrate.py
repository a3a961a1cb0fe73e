from threading import Barrier, Thread
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    event,
    insert,
    inspect,
    select,
    update,
)

from db_dedup.errors import ConfigError, SchemaMissingError, UnknownNameError
from db_dedup.records.names import Namespace
from db_dedup.schema.alembic_runs import steps_up
from db_dedup.schema.migrate import (
    current_revision,
    downgrade,
    include_name,
    upgrade,
)
from db_dedup.schema.revisions import head_revision, known_revisions, migrations_folder
from db_dedup.schema.schema_ddl import version_table
from db_dedup.schema.tables import our_tables
from db_dedup.schema.views import FIXED_VIEWS, CreateView, DropView
from tests.schema.conftest import is_current, namespace_in
from tests.schema.description import describe, everything
from tests.servers import Database

ODD_NAMES = ["dedup", '信访 "50%": `a`', "x" * 60]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_up_twice_and_down_leaves_nothing(database: Database, name: str) -> None:
    namespace = namespace_in(database, name)
    with database.engine.begin() as connection:
        before = everything(connection)
        assert current_revision(connection, namespace) is None
        assert not is_current(connection, namespace)
    for _ in range(2):
        with database.engine.begin() as connection:
            upgrade(connection, namespace)
    with database.engine.begin() as connection:
        assert current_revision(connection, namespace) == head_revision()
        assert is_current(connection, namespace)
        tables = set(inspect(connection).get_table_names(namespace.schema))
        assert tables == {t.name for t in our_tables(namespace).metadata.tables.values()} | {
            version_table(namespace).name
        }
        downgrade(connection, namespace, "base")
    with database.engine.begin() as connection:
        assert everything(connection) == before
        downgrade(connection, namespace, "base")
        assert everything(connection) == before


def test_up_after_down_is_the_same(database: Database, namespace: Namespace) -> None:
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        first = describe(connection, namespace)
        downgrade(connection, namespace, "base")
        upgrade(connection, namespace)
        assert describe(connection, namespace) == first


def test_only_missing_migrations_are_run() -> None:
    assert len(steps_up(None)) == len(known_revisions())
    assert not steps_up(head_revision())


def test_a_fresh_schema_equals_the_migrated_one(database: Database) -> None:
    fresh, migrated = namespace_in(database, "fresh"), namespace_in(database, "migrated")
    with database.engine.begin() as connection:
        upgrade(connection, migrated)
        create_all(connection, fresh)
    with database.engine.begin() as connection:
        described = describe(connection, migrated)
        assert described == describe(connection, fresh)
        # Nothing that matters escapes the description.
        for word in ("case", "row_key", "duplicate_members", "fingerprint_block_4", "group_id"):
            assert any(word in line.casefold() for line in described)


def create_all(connection: Connection, namespace: Namespace) -> None:
    """What our tables and views are now, made without the migrations."""
    if namespace.schema:
        connection.exec_driver_sql(f"CREATE SCHEMA {namespace.schema}")
    tables = our_tables(namespace)
    tables.metadata.create_all(connection)
    for base, query in FIXED_VIEWS.items():
        connection.execute(CreateView(namespace.name(base), namespace.schema, query(tables)))


# Alembic cannot compare generated expressions; the test above does.
@pytest.mark.filterwarnings("ignore:Computed default on .* cannot be modified:UserWarning")
def test_autogenerate_finds_nothing_to_do(database: Database, namespace: Namespace) -> None:
    def only_ours(name: str | None, type_: str, parents: Any) -> bool:
        if type_ == "schema":
            return name == namespace.schema
        return type_ != "table" or not include_name(namespace)(name, type_, parents)

    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        version_table(namespace).drop(connection)
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_schemas": True,
                "include_name": only_ours,
            },
        )
        assert found_by(context, namespace) == []
        change = our_tables(namespace).change
        connection.execute(DropView(namespace.name("queue_lag"), namespace.schema))
        change.drop(connection)
        difference, table = compare_metadata(context, our_tables(namespace).metadata)[0]
        assert (difference, table.name) == ("add_table", change.name)


def found_by(context: MigrationContext, namespace: Namespace) -> list[Any]:
    """What Alembic would change. It takes MariaDB's brackets around an expression for a difference; the test
    above compares the default."""
    found = compare_metadata(context, our_tables(namespace).metadata)
    return [
        d for d in found if not (isinstance(d, list) and d[0][0] == "modify_default" and d[0][3] == "nonce")
    ]


def test_two_namespaces_live_side_by_side(database: Database) -> None:
    one, other = namespace_in(database, "one"), namespace_in(database, "other")
    with database.engine.begin() as connection:
        upgrade(connection, one)
        assert current_revision(connection, other) is None
        upgrade(connection, other)
        downgrade(connection, one, "base")
        assert is_current(connection, other)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_a_rolled_back_upgrade_leaves_nothing(database: Database, namespace: Namespace) -> None:
    with database.engine.connect() as connection:
        before = everything(connection)
        connection.rollback()
        upgrade(connection, namespace)
        connection.rollback()
    with database.engine.connect() as connection:
        assert everything(connection) == before


def test_an_upgrade_that_broke_off_starts_again(database: Database, namespace: Namespace) -> None:
    class PowerCutError(Exception):
        pass

    def cut(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if "CREATE TABLE" in statement and "dead_change" in statement:
            raise PowerCutError

    event.listen(database.engine, "before_cursor_execute", cut)
    with pytest.raises(PowerCutError), database.engine.begin() as connection:
        upgrade(connection, namespace)
    event.remove(database.engine, "before_cursor_execute", cut)
    with database.engine.begin() as connection:
        assert not is_current(connection, namespace)
        upgrade(connection, namespace)
        assert is_current(connection, namespace)


def test_tables_with_rows_are_never_dropped(database: Database, namespace: Namespace) -> None:
    """Whatever has emptied the version table."""
    tables = our_tables(namespace)
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(insert(tables.watched_table).values(name="petitions", definition="{}"))
        connection.execute(version_table(namespace).delete())
    for _ in range(2):
        with (
            pytest.raises(SchemaMissingError, match=r"names no revision, although .*watched_table is there"),
            database.engine.begin() as connection,
        ):
            upgrade(connection, namespace)
    with database.engine.begin() as connection:
        assert connection.scalars(select(tables.watched_table.c.name)).all() == ["petitions"]
        connection.execute(version_table(namespace).insert().values(version_num=head_revision()))
        upgrade(connection, namespace)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1", (ConfigError, "alembic_version is there")),
        ("CREATE TABLE scan (page integer)", (ConfigError, "scan is there")),
        ("CREATE VIEW queue_lag AS SELECT 1 AS page", (ConfigError, "queue_lag is there")),
    ],
    ids=["nothing", "table", "view"],
)
def test_an_empty_version_table_of_the_host(
    postgresql_database: Database, statement: str, expected: tuple[type[Exception], str]
) -> None:
    """In a schema that both share. Nothing of the host's is dropped, and its Alembic keeps its table."""
    host = Namespace("public", "")
    with postgresql_database.engine.begin() as connection:
        version_table(host).create(connection)
        connection.exec_driver_sql(statement)
        before = everything(connection)
    with pytest.raises(expected[0], match=expected[1]), postgresql_database.engine.begin() as connection:
        upgrade(connection, host)
    with postgresql_database.engine.begin() as connection:
        assert everything(connection) == before


def test_a_table_of_the_user_s_with_our_name_stays(database: Database, namespace: Namespace) -> None:
    with database.engine.begin() as connection:
        if namespace.schema:
            connection.exec_driver_sql(f"CREATE SCHEMA {namespace.schema}")
        Table(namespace.name("scan"), MetaData(), Column("page", Integer), schema=namespace.schema).create(
            connection
        )
        before = everything(connection)
    for _ in range(2):
        with (
            pytest.raises(ConfigError, match=r"scan is there already and was not made by db_dedup"),
            database.engine.begin() as connection,
        ):
            upgrade(connection, namespace)
    with database.engine.begin() as connection:
        assert everything(connection) == before


def test_what_was_made_is_committed_where_ddl_is(mariadb_or_mysql: Database) -> None:
    """Else the tables would stay and their revision be lost with the caller's transaction."""
    namespace = Namespace(None, "dedup_")
    with mariadb_or_mysql.engine.connect() as connection:
        upgrade(connection, namespace)
        connection.rollback()
    with mariadb_or_mysql.engine.connect() as connection:
        assert is_current(connection, namespace)


def test_an_upgrade_keeps_what_is_stored(database: Database, namespace: Namespace) -> None:
    table = our_tables(namespace).watched_table
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(insert(table).values(name="petitions", definition="{}"))
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        assert connection.scalars(select(table.c.name)).all() == ["petitions"]


def test_an_unknown_revision_is_left_alone(database: Database, namespace: Namespace) -> None:
    with database.engine.begin() as connection:
        upgrade(connection, namespace)
        connection.execute(update(version_table(namespace)).values(version_num="9999"))
    for change in (upgrade, lambda c, n: downgrade(c, n, "base")):
        with (
            pytest.raises(SchemaMissingError, match="'9999', which this version does not know"),
            database.engine.begin() as connection,
        ):
            change(connection, namespace)
    with database.engine.begin() as connection:
        assert current_revision(connection, namespace) == "9999"
        assert inspect(connection).has_table(namespace.name("pair"), namespace.schema)


def test_down_to_a_revision_that_is_none(sqlite_database: Database) -> None:
    namespace = Namespace(None, "dedup_")
    with sqlite_database.engine.begin() as connection:
        upgrade(connection, namespace)
        with pytest.raises(UnknownNameError, match=r"unknown revision '0': there is 0001, .*0017.*, base"):
            downgrade(connection, namespace, "0")


def test_an_upgrade_sees_what_another_did_after_it_began(database: Database, namespace: Namespace) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE petitions (id integer)")
    with database.engine.connect() as early, database.engine.connect() as late:
        early.exec_driver_sql("SELECT * FROM petitions").all()
        upgrade(late, namespace)
        late.commit()
        upgrade(early, namespace)
        early.commit()
        assert is_current(early, namespace)


@pytest.mark.parametrize("emits_begin", [False, True])
def test_upgrades_started_at_once(database: Database, namespace: Namespace, emits_begin: bool) -> None:
    if emits_begin:
        begin_by_hand(database)
    barrier, failures = Barrier(4), []

    def run() -> None:
        try:
            with database.engine.begin() as connection:
                barrier.wait(timeout=30)
                upgrade(connection, namespace)
        except Exception as error:
            failures.append(error)

    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.engine.begin() as connection:
        assert is_current(connection, namespace)
        assert len(connection.scalars(select(version_table(namespace).c.version_num)).all()) == 1


def begin_by_hand(database: Database) -> None:
    """On SQLite, take the start of transactions from the driver, as its documentation advises."""
    if database.name != "sqlite":
        return
    engine: Engine = database.engine

    @event.listens_for(engine, "connect")
    def _connect(dbapi_connection: Any, _: Any) -> None:
        dbapi_connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")


def test_files_of_migrations_are_named_by_their_revisions() -> None:
    """So that a start need not ask Alembic which is the newest."""
    scripts = ScriptDirectory(migrations_folder()).walk_revisions()
    assert known_revisions() == [script.revision for script in scripts]
