"""What all databases share about the queue: the key of a change, and the query for the oldest ones."""

from typing import Any, Final

from sqlalchemy import Select, Table, select

QUEUE_KEY: Final = ("table_id", "queued_at", "row_key", "nonce")
"""The columns that name one change in the queue."""

ChangeKey = tuple[int, Any, str, Any]
"""Their values, as the driver returned them: only the database compares them."""


def oldest_changes(
    queue: Table, columns: list[Any], table_id: int, limit: int, row_key: str | None
) -> Select[Any]:
    """Select columns of a table's oldest changes and lock them; changes that others have locked are left
    out."""
    query = select(*columns).select_from(queue).where(queue.c.table_id == table_id)
    if row_key is not None:
        query = query.where(queue.c.row_key == row_key)
    return query.order_by(queue.c.queued_at).limit(limit).with_for_update(skip_locked=True)
