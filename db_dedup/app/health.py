"""The state of the watched tables and their triggers: what `status` shows."""

from dataclasses import replace

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DedupError, TableGoneError, UnknownNameError
from db_dedup.jobs.objects.attachment import Attachment, AttachmentReport, AttachmentState, plan_triggers
from db_dedup.records import TableStatus
from db_dedup.schema.tables import Tables
from db_dedup.store.inspection import inspect_table
from db_dedup.store.status import read_status
from db_dedup.store.watched_tables import StoredTable, list_tables


def read_health(connection: Connection, dialect: Dialect, tables: Tables) -> list[TableStatus]:
    """Return the state of each watched table, sorted by name."""
    found = read_status(connection, dialect, tables)
    stored = {table.watched.name: table for table in list_tables(connection, tables)}
    return [_with_triggers(connection, dialect, tables, entry, stored[entry.table]) for entry in found]


def _with_triggers(
    connection: Connection, dialect: Dialect, tables: Tables, entry: TableStatus, stored: StoredTable
) -> TableStatus:
    """Return the entry with the state of the triggers; "unknown" and the reason if they cannot be read."""
    try:
        report = _triggers(connection, dialect, tables, stored)
    except DedupError as error:
        return replace(entry, trigger_faults=(str(error),))
    except SQLAlchemyError as error:
        connection.rollback()
        return replace(entry, trigger_faults=(str(dialect.translate_error(error)),))
    return replace(entry, triggers=str(report.state), trigger_faults=report.differences)


def _triggers(
    connection: Connection, dialect: Dialect, tables: Tables, stored: StoredTable
) -> AttachmentReport:
    if stored.attached_at is None:
        return AttachmentReport(AttachmentState.NOT_ATTACHED)
    watched = stored.watched
    try:
        table = inspect_table(connection, watched.table_name, watched.schema_name)
    except UnknownNameError as error:
        raise TableGoneError(watched.name, watched.table_name, error.near) from None
    plan = plan_triggers(tables.namespace, stored.id, stored.watched, table)
    return Attachment(dialect, tables, plan).state(connection)
