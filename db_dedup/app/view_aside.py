"""Our view and triggers of a table out of the way, while the host application changes that table."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from sqlalchemy import Connection, Engine

from db_dedup.app.arguments import require, require_text
from db_dedup.app.database import Database
from db_dedup.config import WatchedTable
from db_dedup.errors import ConfigError, DedupError, UnknownNameError
from db_dedup.jobs.attachment import Attachment, plan_triggers, trigger_target
from db_dedup.jobs.lock_waits import short_wait
from db_dedup.jobs.table_view import TableView
from db_dedup.jobs.trigger_removal import detach, put_aside
from db_dedup.records import SourceTable
from db_dedup.schema import migrate
from db_dedup.schema.locks import schema_lock
from db_dedup.schema.views import DropView
from db_dedup.store import watched_tables
from db_dedup.store.inspection import check_columns, inspect_table
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable


@contextmanager
def view_aside(
    bind: Connection | Engine | None, table: str, *, schema: str = "dedup", prefix: str = "dedup_"
) -> Iterator[None]:
    """Drop `duplicates_of_<table>`, let the block change the table, make the view anew from what it is then.

    So with our triggers, where the table is attached: they name its columns. What the block itself writes is
    found when the worker next starts, as after `attach`.

    On a connection all of it is part of the caller's transaction, which stays theirs to commit or roll back;
    MySQL and MariaDB commit each such statement by themselves. Nothing happens where the database has no
    tables of ours, or the table no view. A warning tells of a column that our settings still name.

    With an engine, stop the worker of the table before: it may find that the triggers are missing, and make
    them again in the middle of the block.

    Args:
        bind: `op.get_bind()` in a migration of Alembic; or an engine; None (offline) only warns.
        table: its name in the database, or the one it is watched under.
        schema: of our tables, where the database has schemas.
        prefix: of their names, where it has none.

    Raises:
        DedupError: the view or the triggers cannot be dropped or made. What the block raises stays as it is.
    """
    require_text(table, "table")
    require(bind, Connection | Engine | None, "bind", "a Connection or Engine of SQLAlchemy")
    if bind is None:
        warnings.warn(f"without a connection the view of {table!r} stays as it is", stacklevel=3)
        yield
        return
    database = Database(bind.engine, schema, prefix)
    with ExitStack() as stack:
        with _transaction(database, bind) as connection:
            watched = _step_aside(database, connection, table)
        if isinstance(bind, Connection) and any(stored.attached_at for stored in watched):
            # A worker that finds the triggers missing waits for this lock before it makes them again.
            with database.errors_told():
                stack.enter_context(schema_lock(bind, database.namespace))
        try:
            yield
        except BaseException:
            # Where the transaction is broken its rollback brings the view back.
            with suppress(DedupError), _transaction(database, bind) as connection:
                _step_back(database, connection, watched)
            raise
        with _transaction(database, bind) as connection:
            faults = _step_back(database, connection, watched)
    for fault in faults:
        warnings.warn(fault, stacklevel=3)


@contextmanager
def _transaction(database: Database, bind: Connection | Engine) -> Iterator[Connection]:
    """The caller's, if they handed a connection."""
    with database.errors_told():
        if isinstance(bind, Connection):
            yield bind
            return
        with database.dialect.write_transaction(bind) as connection:
            yield connection


def _step_aside(database: Database, connection: Connection, table: str) -> list[StoredTable]:
    """Drop the views and triggers of a table; one can be watched under several names."""
    if migrate.current_revision(connection, database.namespace) is None:
        return []
    database.require_schema_on(connection)
    found = watched_tables.list_tables(connection, database.tables)
    watched = [stored for stored in found if table in (stored.watched.table_name, stored.watched.name)]
    for stored in watched:
        if stored.view_name:
            with short_wait(connection, database.dialect, f"the view {stored.view_name}"):
                connection.execute(DropView(stored.view_name, database.namespace.schema))
        if stored.attached_at is not None:
            target = trigger_target(database.namespace, stored.id, stored.watched)
            put_aside(connection, database.dialect, target)
    return watched


def _step_back(database: Database, connection: Connection, watched: list[StoredTable]) -> list[str]:
    """Make the views and triggers; gives what does not fit any more, a line each."""
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
        return f"{watched.name!r} is no longer attached, {error}"
    return None


def _make_view(database: Database, connection: Connection, stored: StoredTable) -> str | None:
    watched, fault = stored.watched, None
    advice = f"change its settings, then run `db-dedup scan {watched.name}`, which fails until then"
    try:
        table = inspect_table(connection, watched.table_name, watched.schema_name)
        try:
            check_columns(watched, table)
        except UnknownNameError as error:
            fault = f"{watched.name!r} is watched with an {error}: {advice}"
        source = Source(database.dialect, table, _remaining(watched, table))
    except UnknownNameError as error:
        watched_tables.set_view(connection, database.tables, stored.id, None, None)
        return f"{watched.name!r} has no view any more, {error}: {advice}"
    TableView(database.dialect, database.tables, source).refresh(connection, stored)
    return fault


def _remaining(watched: WatchedTable, table: SourceTable) -> WatchedTable:
    """The settings as far as the table still has their columns; without its key there is no view."""
    left = {column.name for column in table.columns}
    return watched.model_copy(
        update={
            "columns": {name: column for name, column in watched.columns.items() if name in left},
            "order": watched.order if watched.order in left else None,
            "within": tuple(part for part in watched.within if part.column in left),
        }
    )
