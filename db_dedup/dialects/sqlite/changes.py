"""Taking from the queue in SQLite."""

from sqlalchemy import Connection, Table, column

from db_dedup.dialects.queue import oldest_changes
from db_dedup.dialects.sqlite.bulk import bulk_delete


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """SELECT, then DELETE: older versions have no RETURNING."""
    columns = [column("rowid"), queue.c.row_key, queue.c.operation]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    bulk_delete(connection, queue, "rowid", [row[0] for row in rows])
    return [(row[1], row[2]) for row in rows]
