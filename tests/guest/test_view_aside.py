"""The host's own migrations change a watched table: our view steps aside and comes back."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from db_dedup import Database, Deduplicator, view_aside
from db_dedup.config import watched_table
from db_dedup.errors import UnknownNameError
from db_dedup.sample import Sample
from tests import servers
from tests.scan.conftest import fill_database, watch

ENV = """
    from alembic import context

    attributes = context.config.attributes
    context.configure(connection=attributes["connection"], transaction_per_migration=True,
                      target_metadata=attributes.get("metadata"), include_name=attributes.get("include_name"),
                      include_schemas=attributes.get("include_schemas", False))
    with context.begin_transaction():
        context.run_migrations()
"""
MIGRATION = """
    from alembic import op
    import sqlalchemy as sa
    from db_dedup import view_aside

    revision, down_revision = "host1", None

    def upgrade():
        with view_aside(op.get_bind(), "petitions"):
            {change}
"""
BATCH = 'with op.batch_alter_table("petitions", recreate="always") as batch: batch.{change}'


@pytest.fixture
def scanned(database: servers.Database, sample: Sample) -> Iterator[Deduplicator]:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    yield dedup
    database.engine.dispose()


def migrate(folder: Path, connection: Connection, change: str) -> None:
    """Run a migration of the host's with this change in it, in a transaction of the host's."""
    (folder / "versions").mkdir(parents=True, exist_ok=True)
    (folder / "env.py").write_text(dedent(ENV))
    (folder / "versions" / "host1.py").write_text(dedent(MIGRATION).format(change=change))
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def view_of(dedup: Deduplicator) -> list[dict[str, Any]]:
    name = "dedup.duplicates_of_petitions" if dedup.database.namespace.schema else "dedup_duplicates_of_petitions"
    with dedup.database.engine.connect() as connection:
        return [dict(row) for row in connection.execute(text(f"SELECT * FROM {name}")).mappings()]


CHANGES = {
    "drop": ('op.drop_column("petitions", "phone")', "phone"),
    "rename": ('op.alter_column("petitions", "phone", new_column_name="tel", existing_type=sa.String(50))', "phone"),
    "retype": ('op.alter_column("petitions", "title", type_=sa.String(300), existing_nullable=False)', None),
    "add": ('op.add_column("petitions", sa.Column("closed_at", sa.DateTime))', None),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_a_migration_of_the_host_changes_what_our_view_shows(
    scanned: Deduplicator, tmp_path: Path, kind: str
) -> None:
    change, gone = CHANGES[kind]
    if scanned.database.dialect.default_driver == "pysqlite" and kind != "add":
        change = BATCH.format(change=change.removeprefix("op.").replace('"petitions", ', ""))
    before = view_of(scanned)
    with scanned.database.engine.begin() as connection, warnings.catch_warnings():
        warnings.simplefilter("error")
        migrate(tmp_path / "host", connection, change)
    after = view_of(scanned)
    assert sorted(row["id"] for row in before) == sorted(row["id"] for row in after)
    expected = {*before[0]} - {gone} | {"rename": {"tel"}, "add": {"closed_at"}}.get(kind, set())
    assert set(after[0]) == expected
    view, digest = stored_view(scanned)
    scanned.scan()
    assert stored_view(scanned) == (view, digest), "the scan had nothing to repair"


def stored_view(dedup: Deduplicator) -> tuple[Any, Any]:
    table = dedup.database.tables.watched_table
    with dedup.database.engine.connect() as connection:
        row = connection.execute(table.select()).one()
    return row.view_name, row.view_digest


def test_without_it_the_database_may_refuse(scanned: Deduplicator) -> None:
    """What the helper is for; MariaDB lets the column go and leaves a view that nobody can read."""
    statement = text("ALTER TABLE petitions DROP COLUMN phone")
    with pytest.raises(DBAPIError), scanned.database.engine.begin() as connection:  # noqa: PT012
        connection.execute(statement)
        connection.execute(text("SELECT * FROM dedup_duplicates_of_petitions"))
    scanned.database.engine.dispose()
    if scanned.database.dialect.default_driver != "pymysql":
        return
    scanned.scan()
    assert "phone" not in view_of(scanned)[0]


def test_a_watched_column_that_goes_is_told(scanned: Deduplicator) -> None:
    with (
        pytest.warns(UserWarning, match=r"'petitions' is watched.*'content'.*`db-dedup scan petitions`") as told,
        scanned.database.engine.begin() as connection,
        view_aside(connection, "petitions"),
    ):
        connection.execute(text("ALTER TABLE petitions RENAME COLUMN content TO body"))
    assert told[0].filename == __file__
    assert "body" in view_of(scanned)[0]
    with pytest.raises(UnknownNameError, match="content"):
        scanned.scan()
    later = Deduplicator(scanned.database, "petitions", {"title": 1, "body": 1}, order="created_at")
    assert later.scan().groups
    assert view_of(later)


@pytest.mark.parametrize("change", ["DROP TABLE petitions", "ALTER TABLE petitions RENAME TO letters"])
def test_a_table_that_goes_is_told_and_has_no_view(scanned: Deduplicator, change: str) -> None:
    with (
        pytest.warns(UserWarning, match="'petitions' has no view any more, unknown table"),
        scanned.database.engine.begin() as connection,
        view_aside(connection, "petitions"),
    ):
        connection.execute(text(change))
    assert stored_view(scanned) == (None, None)
    assert scanned.groups(), "the answer stays until a scan replaces it"
    scanned.database.uninstall()
    with scanned.database.engine.connect() as connection:
        assert [n for n in inspect(connection).get_view_names() if "dedup" in n] == []


def test_a_key_that_goes_leaves_no_view(scanned: Deduplicator) -> None:
    with (
        pytest.warns(UserWarning, match="'petitions' has no view any more, unknown column"),
        scanned.database.engine.begin() as connection,
        view_aside(connection, "petitions"),
    ):
        connection.execute(text("ALTER TABLE petitions RENAME COLUMN id TO number"))
    assert stored_view(scanned) == (None, None)


def test_the_transaction_stays_the_caller_s(scanned: Deduplicator) -> None:
    """Rolled back, all is as before; MariaDB commits such statements whatever we do."""
    before = view_of(scanned), stored_view(scanned)
    if scanned.database.dialect.default_driver == "pymysql":
        return
    with scanned.database.engine.connect() as connection, connection.begin() as transaction:
        connection.execute(text("UPDATE petitions SET phone = 'x'"))
        with view_aside(connection, "petitions"):
            connection.execute(text("ALTER TABLE petitions DROP COLUMN phone"))
        assert transaction.is_active
        transaction.rollback()
    assert (view_of(scanned), stored_view(scanned)) == before


def test_a_change_that_fails_leaves_the_view(scanned: Deduplicator) -> None:
    before = view_of(scanned)
    with (
        pytest.raises(DBAPIError, match="nonsense"),
        scanned.database.engine.begin() as connection,
        view_aside(connection, "petitions"),
    ):
        connection.execute(text("ALTER TABLE petitions DROP COLUMN nonsense"))
    assert view_of(scanned) == before


def test_an_error_of_the_caller_s_own_leaves_the_view_even_if_they_commit(scanned: Deduplicator) -> None:
    before = view_of(scanned)
    with scanned.database.engine.begin() as connection, pytest.raises(ZeroDivisionError):  # noqa: SIM117
        with view_aside(connection, "petitions"):
            raise ZeroDivisionError
    assert view_of(scanned) == before


def test_on_an_engine_it_works_in_transactions_of_its_own(scanned: Deduplicator) -> None:
    with view_aside(scanned.database.engine, "petitions"), scanned.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE petitions DROP COLUMN phone"))
    assert "phone" not in view_of(scanned)[0]


def test_every_view_of_a_table_steps_aside(scanned: Deduplicator) -> None:
    """One table can be watched under several names."""
    twice = Deduplicator(scanned.database, watched_table("titles", {"table": "petitions", "columns": {"title": 1}}))
    twice.scan()
    with scanned.database.engine.begin() as connection, view_aside(connection, "petitions"):
        connection.execute(text("ALTER TABLE petitions DROP COLUMN phone"))
    for name in ("petitions", "titles"):
        assert "phone" not in Deduplicator(scanned.database, name).view_statements()[1]


def test_where_we_are_not_it_does_nothing(database: servers.Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    with database.engine.begin() as connection, view_aside(connection, "petitions"):
        connection.execute(text("ALTER TABLE petitions DROP COLUMN phone"))
    Database(database.engine).upgrade()
    with database.engine.begin() as connection, view_aside(connection, "petitions"):
        connection.execute(text("ALTER TABLE petitions DROP COLUMN channel"))


def test_offline_it_only_warns() -> None:
    with pytest.warns(UserWarning, match="without a connection"), view_aside(None, "petitions"):
        pass
