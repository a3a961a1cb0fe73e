"""Taking from the queue in PostgreSQL."""

from sqlalchemy import Connection, Table, any_, column, delete, func

from db_dedup.dialects.queue import oldest_changes


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """DELETE ... RETURNING; rows that are being written are not seen, so that nothing is waited for."""
    places = oldest_changes(queue, [column("ctid")], table_id, limit, row_key).scalar_subquery()
    statement = (
        delete(queue)
        .where(column("ctid") == any_(func.array(places)))
        .returning(queue.c.row_key, queue.c.operation)
    )
    return [(row[0], row[1]) for row in connection.execute(statement).all()]
