"""Taking from the queue in MySQL and MariaDB, which have no row number to delete by."""

from sqlalchemy import Connection, Table

from db_dedup.dialects.queue import oldest_changes


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Lock, then delete by the three columns of the queue's index: no other row is looked at, so none is
    waited for. Two changes of a row in one microsecond go together; either has the row read again."""
    columns = [queue.c.row_key, queue.c.operation, queue.c.queued_at]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    quote = connection.dialect.identifier_preparer.quote
    statement = (
        f"DELETE FROM {quote(queue.name)} "  # noqa: S608 - the name is quoted
        "WHERE table_id = %s AND queued_at = %s AND row_key = %s"
    )
    if rows:
        connection.exec_driver_sql(statement, [(table_id, row[2], row[0]) for row in rows])
    return [(row[0], row[1]) for row in rows]
