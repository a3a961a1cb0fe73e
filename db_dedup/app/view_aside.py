"""Drop our view and triggers of a table while the host application changes the table, and make them again."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from sqlalchemy import Connection, Engine

from db_dedup.app.arguments import require, require_text
from db_dedup.app.database import Database
from db_dedup.config import WatchedTable
from db_dedup.errors import ConfigError, DedupError, UnknownNameError
from db_dedup.jobs.objects.attachment import Attachment, plan_triggers, trigger_target
from db_dedup.jobs.objects.lock_waits import short_wait
from db_dedup.jobs.objects.table_view import TableView
from db_dedup.jobs.objects.trigger_removal import detach, lock_watched, put_aside
from db_dedup.records import SourceTable
from db_dedup.schema import migrate
from db_dedup.schema.views import DropView
from db_dedup.store import watched_tables
from db_dedup.store.inspection import check_columns, inspect_table
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

_OTHER_COLUMNS: Final = (
    "{name!r} is watched with an {error}: change its settings, then run `db-dedup scan {name}`, "
    "which fails until then"
)
_NO_VIEW: Final = (
    "{name!r} has no view any more, {error}: change its settings, then run `db-dedup scan {name}`, "
    "which fails until then"
)


@contextmanager
def view_aside(
    bind: Connection | Engine | None, table: str, *, schema: str = "dedup", prefix: str = "dedup_"
) -> Iterator[None]:
    """Drop the view `duplicates_of_<table>`, let the block change the table, and make the view again.

    If the table is attached, its triggers are dropped and made again, too: they name its columns. The worker
    finds the rows that the block writes when it starts the next time, as after `attach`.

    On a connection everything is part of the caller's transaction, which is neither committed nor rolled
    back; but MySQL and MariaDB commit each such statement by themselves. Nothing happens if the database has
    no tables of ours, or the table has no view. A warning names each column that is gone but still in our
    settings.

    With an engine, stop the worker of the table first: it could find that the triggers are missing, and make
    them again in the middle of the block.

    Args:
        bind: `op.get_bind()` in a migration of Alembic; or an engine; None (offline) only warns.
        table: its name in the database, or its name in the settings.
        schema: of our tables, if the database has schemas.
        prefix: of the names of our tables, if it has none.

    Raises:
        DedupError: the view or the triggers cannot be dropped or made. Errors of the block are not changed.
    """
    require_text(table, "table")
    require(bind, Connection | Engine | None, "bind", Phrase("a Connection or Engine of SQLAlchemy"))
    if bind is None:
        warnings.warn(
            Phrase("without a connection the view of {table!r} stays as it is", table=table), stacklevel=3
        )
        yield
        return
    database = Database(bind.engine, schema, prefix)
    with ExitStack() as stack:
        with _transaction(database, bind) as connection:
            watched = _drop_objects(database, connection, table)
        if isinstance(bind, Connection) and any(stored.attached_at for stored in watched):
            # A worker that finds no triggers waits for this lock before it makes them again.
            with database.translate_driver_errors():
                stack.enter_context(database.dialect.schema_lock(bind, database.namespace))
        try:
            yield
        except BaseException:
            # If the transaction has failed, its rollback restores the view.
            with suppress(DedupError), _transaction(database, bind) as connection:
                _make_objects(database, connection, watched)
            raise
        with _transaction(database, bind) as connection:
            faults = _make_objects(database, connection, watched)
    for fault in faults:
        warnings.warn(fault, stacklevel=3)


@contextmanager
def _transaction(database: Database, bind: Connection | Engine) -> Iterator[Connection]:
    """Yield the caller's connection, or for an engine a connection in a transaction of its own."""
    with database.translate_driver_errors():
        if isinstance(bind, Connection):
            yield bind
            return
        with database.dialect.write_transaction(bind) as connection:
            yield connection


def _drop_objects(database: Database, connection: Connection, table: str) -> list[StoredTable]:
    """Drop the views and triggers of a table, which can be watched under several names; return these."""
    if migrate.current_revision(connection, database.namespace) is None:
        return []
    database.require_schema_on(connection)
    found = watched_tables.list_tables(connection, database.tables)
    watched = [
        stored
        for stored in found
        if table in (stored.watched.table_name, stored.watched.name)
        and (stored.view_name or stored.attached_at is not None)
    ]
    if watched:
        with database.dialect.schema_lock(connection, database.namespace):
            lock_watched(connection, database.dialect, database.tables, [stored.id for stored in watched])
            for stored in watched:
                _drop_objects_of(database, connection, stored)
    return watched


def _drop_objects_of(database: Database, connection: Connection, stored: StoredTable) -> None:
    if stored.view_name:
        view = Phrase("the view {name}", name=stored.view_name)
        with short_wait(connection, database.dialect, view):
            connection.execute(DropView(stored.view_name, database.namespace.schema))
    if stored.attached_at is not None:
        put_aside(connection, database.dialect, trigger_target(database.namespace, stored.id, stored.watched))


def _make_objects(database: Database, connection: Connection, watched: list[StoredTable]) -> list[str]:
    """Make the views and triggers; return a line for each one that does not fit the table any more."""
    faults = []
    for stored in watched:
        if stored.view_name:
            faults.append(_make_view(database, connection, stored))
        if stored.attached_at is not None:
            faults.append(_make_triggers(database, connection, stored))
    return [fault for fault in faults if fault]


def _make_triggers(database: Database, connection: Connection, stored: StoredTable) -> str | None:
    watched = stored.watched
    try:
        table = inspect_table(connection, watched.table_name, watched.schema_name)
        plan = plan_triggers(database.namespace, stored.id, _remaining(watched, table), table)
        Attachment(database.dialect, database.tables, plan, stored.recipe).attach(connection)
    except (UnknownNameError, ConfigError) as error:
        target = trigger_target(database.namespace, stored.id, watched)
        detach(connection, database.dialect, database.tables, target)
        return Phrase("{name!r} is no longer attached, {error}", name=watched.name, error=error)
    return None


def _make_view(database: Database, connection: Connection, stored: StoredTable) -> str | None:
    watched, fault = stored.watched, None
    try:
        table = inspect_table(connection, watched.table_name, watched.schema_name)
        try:
            check_columns(watched, table)
        except UnknownNameError as error:
            fault = Phrase(_OTHER_COLUMNS, name=watched.name, error=error)
        source = Source(database.dialect, table, _remaining(watched, table))
    except UnknownNameError as error:
        watched_tables.set_view(connection, database.tables, stored.id, None, None)
        return Phrase(_NO_VIEW, name=watched.name, error=error)
    TableView(database.dialect, database.tables, source).refresh(connection, stored)
    return fault


def _remaining(watched: WatchedTable, table: SourceTable) -> WatchedTable:
    """Return the settings without columns that the table no longer has; without its key it gets no view."""
    left = {column.name for column in table.columns}
    return watched.model_copy(
        update={
            "columns": {name: column for name, column in watched.columns.items() if name in left},
            "order": watched.order if watched.order in left else None,
            "within": tuple(part for part in watched.within if part.column in left),
        }
    )
