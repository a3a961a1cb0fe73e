"""The queue of changes that triggers append to."""

from sqlalchemy import Connection, func, select

from db_dedup.schema.tables import Tables


def count_waiting(connection: Connection, tables: Tables, table_id: int) -> int:
    """How many changes of a table nobody has handled yet."""
    query = select(func.count()).select_from(tables.change).where(tables.change.c.table_id == table_id)
    return int(connection.execute(query).scalar_one())
