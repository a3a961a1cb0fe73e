"""What is stored of the triggers of a watched table, and the deletion of the changes that they queued."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Update, delete, select, update

from db_dedup.config import WatchedTable
from db_dedup.schema.tables import Tables
from db_dedup.store import watched_tables
from db_dedup.store.watched_tables import StoredTable


@dataclass(frozen=True)
class StoredAttachment:
    """What is stored of a table's triggers.

    Attributes:
        attached_at: UTC; every change since then is queued. None where the table is not attached.
        trigger_digest: of how they were planned and what the database made of it; None while they are made,
            and from a switch to settings that need other triggers until these are made.
    """

    attached_at: datetime | None
    trigger_digest: str | None


def read_attachment(connection: Connection, tables: Tables, table_id: int) -> StoredAttachment:
    """Return what is stored of a table's triggers; both values are None if the table is not watched."""
    table = tables.watched_table
    query = select(table.c.attached_at, table.c.trigger_digest).where(table.c.id == table_id)
    row = connection.execute(query).one_or_none()
    return (
        StoredAttachment(None, None) if row is None else StoredAttachment(row.attached_at, row.trigger_digest)
    )


def store_attachment(
    connection: Connection, tables: Tables, table_id: int, attachment: StoredAttachment
) -> None:
    """Store what is known of a table's triggers."""
    connection.execute(_update(tables, table_id, attachment))


def store_attachment_for(
    connection: Connection, tables: Tables, table_id: int, attachment: StoredAttachment, recipe: int | None
) -> bool:
    """Do the same if this recipe serves (None: no recipe serves yet); return whether it does."""
    is_served = tables.watched_table.c.recipe.is_not_distinct_from(recipe)
    return connection.execute(_update(tables, table_id, attachment).where(is_served)).rowcount == 1


def _update(tables: Tables, table_id: int, attachment: StoredAttachment) -> Update:
    table = tables.watched_table
    values = {"attached_at": attachment.attached_at, "trigger_digest": attachment.trigger_digest}
    return update(table).where(table.c.id == table_id).values(values)


def add_unscanned(connection: Connection, tables: Tables, watched: WatchedTable) -> StoredTable:
    """Return the row of a table without a finished scan, with these settings; add it if there is none."""
    stored = watched_tables.add_table(connection, tables, watched)
    table = tables.watched_table
    connection.execute(
        update(table)
        .where(table.c.id == stored.id, table.c.recipe.is_(None))
        .values(definition=watched_tables.definition_of(watched))
    )
    return stored


def forget_changes(connection: Connection, tables: Tables, table_id: int) -> int:
    """Delete the table's changes, waiting and dead ones. Return how many were waiting."""
    connection.execute(delete(tables.dead_change).where(tables.dead_change.c.table_id == table_id))
    return connection.execute(delete(tables.change).where(tables.change.c.table_id == table_id)).rowcount
