"""Many rows of our tables at once in SQLite: one prepared statement on the driver's level."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, DateTime, Engine, Table, column

from db_dedup.dialects.batches import Rows
from db_dedup.dialects.queue import oldest_changes
from db_dedup.dialects.sqlite.sessions import write_transaction
from db_dedup.records.pages import take_lists

_ROWS_A_CALL = 10_000


def bulk_insert(connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
    """Insert with one prepared statement."""
    quote = connection.dialect.identifier_preparer.quote
    names, marks = ", ".join(map(quote, columns)), ", ".join("?" for _ in columns)
    statement = f"INSERT INTO {quote(table.name)} ({names}) VALUES ({marks})"  # noqa: S608 - names are quoted
    _execute(connection, statement, table, columns, rows)


def bulk_update(connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows) -> None:
    """Update by key with one prepared statement."""
    quote = connection.dialect.identifier_preparer.quote
    values = ", ".join(f"{quote(column)} = ?{i}" for i, column in enumerate(columns, 2))
    statement = f"UPDATE {quote(table.name)} SET {values} WHERE {quote(key)} = ?1"  # noqa: S608 - names are quoted
    _execute(connection, statement, table, [key, *columns], rows)


def bulk_delete(connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
    """Delete by key with one prepared statement."""
    bulk_delete_keys(connection, table, [key], ((row_id,) for row_id in ids))


def bulk_delete_keys(connection: Connection, table: Table, columns: Sequence[str], keys: Rows) -> None:
    """Delete by all columns of the key with one prepared statement."""
    quote = connection.dialect.identifier_preparer.quote
    are_equal = " AND ".join(f"{quote(name)} = ?" for name in columns)
    statement = f"DELETE FROM {quote(table.name)} WHERE {are_equal}"  # noqa: S608 - names are quoted
    for batch in take_lists(map(tuple, keys), lambda: _ROWS_A_CALL):
        connection.exec_driver_sql(statement, batch)


def refresh_statistics(engine: Engine, table: Table) -> None:
    """Run ANALYZE for one table: the statistics of the user's tables stay as they are."""
    with write_transaction(engine) as connection:
        connection.exec_driver_sql(f"ANALYZE {connection.dialect.identifier_preparer.quote(table.name)}")


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Select, then delete by rowid: older versions have no RETURNING.

    They are sorted by rowid, which ascends: the time does not order the changes of one millisecond.
    """
    columns = [column("rowid"), queue.c.row_key, queue.c.operation]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    bulk_delete(connection, queue, "rowid", [row[0] for row in rows])
    return [(row[1], row[2]) for row in sorted(rows, key=itemgetter(0))]


def _execute(
    connection: Connection, statement: str, table: Table, columns: Sequence[str], rows: Rows
) -> None:
    # No packet carries the rows, so their bytes need no limit.
    for batch in take_lists(_storable(table, columns, rows), lambda: _ROWS_A_CALL):
        connection.exec_driver_sql(statement, batch)


def _storable(table: Table, columns: Sequence[str], rows: Rows) -> Iterator[tuple[Any, ...]]:
    """Return rows with times written as SQLAlchemy reads them: SQLite has no type for times."""
    is_time = [isinstance(table.c[column].type, DateTime) for column in columns]
    if not any(is_time):
        return map(tuple, rows)
    times = [place for place, time in enumerate(is_time) if time]
    return (_with_time_texts(row, times) for row in rows)


def _with_time_texts(row: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for place in places:
        values[place] = _time_text(values[place])
    return tuple(values)


@lru_cache(maxsize=8)  # the rows of a batch share their time
def _time_text(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(" ", "microseconds")
