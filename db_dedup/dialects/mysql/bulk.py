"""Many rows of our tables at once in MySQL and MariaDB: multi-row inserts, else JSON as a table."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, Integer, LargeBinary, Table

from db_dedup.dialects.batches import Rows, batches, row_batches
from db_dedup.dialects.queue import QUEUE_KEY, oldest_changes

_ROWS_A_CALL = 10_000
_ROWS_A_STATEMENT = 2_000
_NUMBERS: Final = re.compile(r"(?:[\[\]0-9, -]|null)*")
_ROUND_BRACKETS: Final = str.maketrans("[]", "()")


def bulk_insert(connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
    """Insert with INSERT; the driver puts many rows into one statement.

    Rows of whole numbers are written into the statement here: the driver takes five times as long to quote
    each number.
    """
    quote = connection.dialect.identifier_preparer.quote
    names, marks = ", ".join(map(quote, columns)), ", ".join("%s" for _ in columns)
    into = f"INSERT INTO {_name(connection, table)} ({names}) VALUES "  # noqa: S608 - names are quoted
    are_numbers = all(isinstance(table.c[name].type, Integer) for name in columns)
    for batch in row_batches(table, columns, rows, _ROWS_A_CALL):
        given = [tuple(row) for row in batch]
        if are_numbers:
            connection.exec_driver_sql(into + _tuples_of_numbers(given))
        else:
            connection.exec_driver_sql(f"{into} ({marks})", given)


def _tuples_of_numbers(rows: Sequence[Sequence[int | None]]) -> str:
    """Return (1, 2), (3, NULL): JSON's arrays with other brackets. What is no number is refused."""
    text = json.dumps(rows)
    if not _NUMBERS.fullmatch(text):
        raise TypeError(f"not whole numbers alone in {len(rows)} rows")
    return text[1:-1].translate(_ROUND_BRACKETS)


def bulk_update(connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows) -> None:
    """Update with an UPDATE that is joined to a JSON array of arrays."""
    quote = connection.dialect.identifier_preparer.quote
    names = [key, *columns]
    fields = _json_fields(connection, table, names)
    values = ", ".join(f"old.{quote(name)} = {_from_json(table, name, quote(name))}" for name in columns)
    statement = (
        f"UPDATE JSON_TABLE(%s, '$[*]' COLUMNS ({fields})) AS new "  # noqa: S608 - names are quoted
        f"STRAIGHT_JOIN {_name(connection, table)} AS old ON old.{quote(key)} = new.{quote(key)} SET {values}"
    )
    for batch in row_batches(table, names, rows, _ROWS_A_STATEMENT):
        document = json.dumps([tuple(row) for row in batch], ensure_ascii=False, default=_json_value)
        connection.exec_driver_sql(statement, (document,))


def bulk_delete(connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
    """Delete with DELETE ... IN (list)."""
    quoted = connection.dialect.identifier_preparer.quote(key)
    for batch in batches(ids, _ROWS_A_STATEMENT):
        numbers = ", ".join(str(int(row_id)) for row_id in batch)
        statement = f"DELETE FROM {_name(connection, table)} WHERE {quoted} IN ({numbers})"  # noqa: S608 - numbers
        connection.exec_driver_sql(statement)


def bulk_delete_keys(connection: Connection, table: Table, columns: Sequence[str], keys: Rows) -> None:
    """Delete with a DELETE that is joined to a JSON array of keys.

    It fixes join order and index, since the planner misjudges a queue that is short now.
    """
    quote = connection.dialect.identifier_preparer.quote
    fields = _json_fields(connection, table, columns)
    are_equal = " AND ".join(f"old.{quote(name)} = gone.{quote(name)}" for name in columns)
    statement = (
        f"DELETE old FROM JSON_TABLE(%s, '$[*]' COLUMNS ({fields})) AS gone "
        f"STRAIGHT_JOIN {_name(connection, table)} AS old FORCE INDEX (PRIMARY) ON {are_equal}"
    )
    for batch in row_batches(table, columns, keys, _ROWS_A_STATEMENT):
        document = json.dumps([tuple(key) for key in batch], ensure_ascii=False, default=_json_value)
        connection.exec_driver_sql(statement, (document,))


def refresh_statistics(engine: Engine, table: Table) -> None:
    """Run ANALYZE TABLE, on a connection of its own: it commits the open transaction."""
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ANALYZE LOCAL TABLE {_name(connection, table)}").close()


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Lock the changes, then delete them by key: no other row is read, so none is waited for."""
    columns = [queue.c[name] for name in (*QUEUE_KEY, "operation")]
    rows = connection.execute(oldest_changes(queue, columns, table_id, limit, row_key)).all()
    bulk_delete_keys(connection, queue, QUEUE_KEY, [row[:-1] for row in rows])
    return [(row.row_key, row.operation) for row in rows]


def _name(connection: Connection, table: Table) -> str:
    return connection.dialect.identifier_preparer.format_table(table)


def _json_fields(connection: Connection, table: Table, columns: Sequence[str]) -> str:
    """Return the columns of a table of JSON arrays, each with the values of these columns."""
    quote = connection.dialect.identifier_preparer.quote
    types = (_json_type(connection, table, name) for name in columns)
    fields = zip(columns, types, strict=True)
    return ", ".join(f"{quote(name)} {kind} PATH '$[{i}]'" for i, (name, kind) in enumerate(fields))


def _json_type(connection: Connection, table: Table, column: str) -> str:
    kind = table.c[column].type
    if isinstance(kind, LargeBinary):
        return "LONGTEXT"
    return kind.compile(dialect=connection.dialect)


def _from_json(table: Table, column: str, quoted: str) -> str:
    if isinstance(table.c[column].type, LargeBinary):
        return f"UNHEX(new.{quoted})"
    return f"new.{quoted}"


def _json_value(value: Any) -> str:
    """Return a value that JSON has no form for as text."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.isoformat(" ")
    raise TypeError(type(value).__name__)
