"""Taking from the queue in MySQL and MariaDB, which have no row number to delete by."""

import json

from sqlalchemy import Connection, Table

from db_dedup.dialects.batches import batches
from db_dedup.dialects.queue import oldest_changes

_ROWS_A_STATEMENT = 2_000
_KEY = ("queued_at", "row_key", "nonce")
"""The key of the queue, the table's number aside."""


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Lock, then delete by the key: no other row is looked at, so none is waited for."""
    columns = [queue.c[name] for name in (*_KEY, "operation")]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    statement = _delete(connection, queue, table_id)
    for some in batches(((str(row[0]), row[1], row[2]) for row in rows), _ROWS_A_STATEMENT):
        connection.exec_driver_sql(statement, (json.dumps(some, ensure_ascii=False),))
    return [(row.row_key, row.operation) for row in rows]


def _delete(connection: Connection, queue: Table, table_id: int) -> str:
    """Joined in this order and by the key, whatever the planner thinks of a queue that is short now."""
    quote = connection.dialect.identifier_preparer.quote
    types = (queue.c[name].type.compile(dialect=connection.dialect) for name in _KEY)
    columns = ", ".join(
        f"{name} {type_} PATH '$[{i}]'" for i, (name, type_) in enumerate(zip(_KEY, types, strict=True))
    )
    is_same = " AND ".join(f"old.{name} = new.{name}" for name in _KEY)
    return (
        f"DELETE old FROM JSON_TABLE(%s, '$[*]' COLUMNS ({columns})) AS new "
        f"STRAIGHT_JOIN {quote(queue.name)} AS old FORCE INDEX (PRIMARY) "
        f"ON old.table_id = {int(table_id)} AND {is_same}"
    )
