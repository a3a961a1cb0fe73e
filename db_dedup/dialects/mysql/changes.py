"""Taking from the queue in MySQL and MariaDB, which have no row number to delete by."""

import json

from sqlalchemy import Connection, Table

from db_dedup.dialects.batches import batches
from db_dedup.dialects.queue import oldest_changes

_ROWS_A_STATEMENT = 2_000


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Lock, then delete by the three columns of the queue's index: no other row is looked at, so none is
    waited for. Two changes of a row in one microsecond go together; either has the row read again."""
    columns = [queue.c.row_key, queue.c.operation, queue.c.queued_at]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    statement = _delete(connection, queue, table_id)
    # Each once: entries that are gone stay in the index until the transaction ends, and would be met again.
    taken = dict.fromkeys((str(queued_at), key) for key, _, queued_at in rows)
    for some in batches(taken, _ROWS_A_STATEMENT):
        connection.exec_driver_sql(statement, (json.dumps(some, ensure_ascii=False),))
    return [(row[0], row[1]) for row in rows]


def _delete(connection: Connection, queue: Table, table_id: int) -> str:
    """Joined in this order and by this index, whatever the planner thinks of a queue that is short now."""
    (index,) = queue.indexes
    quote = connection.dialect.identifier_preparer.quote
    queued_at, row_key = (
        queue.c[name].type.compile(dialect=connection.dialect) for name in ("queued_at", "row_key")
    )
    return (
        f"DELETE old FROM JSON_TABLE(%s, '$[*]' COLUMNS (queued_at {queued_at} PATH '$[0]', "
        f"row_key {row_key} PATH '$[1]')) AS new "
        f"STRAIGHT_JOIN {quote(queue.name)} AS old FORCE INDEX ({quote(str(index.name))}) "
        f"ON old.table_id = {int(table_id)} AND old.queued_at = new.queued_at AND old.row_key = new.row_key"
    )
