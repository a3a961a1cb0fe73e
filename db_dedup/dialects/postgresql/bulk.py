"""Many rows of our tables at once in PostgreSQL: COPY in, arrays for the rest."""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Engine, Integer, Table, any_, column, delete, func, insert, inspect
from sqlalchemy.exc import DBAPIError

from db_dedup.dialects.batches import Rows, batches, row_batches
from db_dedup.dialects.postgresql.arrays import array_text
from db_dedup.dialects.postgresql.sessions import write_transaction
from db_dedup.dialects.queue import oldest_changes
from db_dedup.records.pages import take_lists

# For each UPDATE of a table of up to some million rows the planner reads the whole table, so few are run.
_ROWS_A_STATEMENT = 50_000
_BYTES_A_STATEMENT = 32 * 1024 * 1024
_LINES_A_WRITE = 10_000


def bulk_insert(connection: Connection, table: Table, columns: Sequence[str], rows: Rows) -> None:
    """Insert with COPY, in the connection's transaction; with another driver, or asyncio, with INSERT."""
    if connection.dialect.driver != "psycopg" or connection.dialect.is_async:
        statement = insert(table)
        for batch in row_batches(table, columns, rows, _ROWS_A_STATEMENT, _BYTES_A_STATEMENT):
            connection.execute(statement, [dict(zip(columns, row, strict=True)) for row in batch])
        return
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(map(quote, columns))
    # COPY takes no parameters, so nothing halves a doubled percent sign.
    copy_in = f"COPY {_name(connection, table)} ({names}) FROM STDIN".replace("%%", "%")
    driver = connection.dialect.loaded_dbapi
    try:
        cursor: Any = connection.connection.cursor()
        with cursor, cursor.copy(copy_in) as copy:
            if _are_numbers(table, columns):
                # Written here in the format of COPY: the driver takes ten times as long for each row.
                for some in take_lists(chain([first], rows), lambda: _LINES_A_WRITE):
                    copy.write("".join("\t".join(map(str, row)) + "\n" for row in some))
            else:
                for row in chain([first], rows):
                    copy.write_row(row)
    except driver.Error as error:
        raise DBAPIError.instance(copy_in, None, error, driver.Error, hide_parameters=True) from error


def _are_numbers(table: Table, columns: Sequence[str]) -> bool:
    return all(isinstance(table.c[name].type, Integer) and not table.c[name].nullable for name in columns)


def bulk_update(connection: Connection, table: Table, key: str, columns: Sequence[str], rows: Rows) -> None:
    """Update with UPDATE ... FROM unnest: one array a column."""
    quote = connection.dialect.identifier_preparer.quote
    names = [key, *columns]
    quoted = [quote(name) for name in names]
    types = [_array_type(connection, table, name) for name in names]
    values = ", ".join(f"{name} = new.{name}" for name in quoted[1:])
    arrays = ", ".join(f"%s::{kind}" for kind in types)
    statement = (
        f"UPDATE {_name(connection, table)} AS old SET {values} "  # noqa: S608 - names are quoted
        f"FROM unnest({arrays}) AS new ({', '.join(quoted)}) WHERE old.{quoted[0]} = new.{quoted[0]}"
    )
    for batch in row_batches(table, names, rows, _ROWS_A_STATEMENT, _BYTES_A_STATEMENT):
        connection.exec_driver_sql(statement, tuple(map(array_text, zip(*batch, strict=True))))


def bulk_delete(connection: Connection, table: Table, key: str, ids: Iterable[int]) -> None:
    """Delete with DELETE ... = ANY (array)."""
    quoted = connection.dialect.identifier_preparer.quote(key)
    statement = f"DELETE FROM {_name(connection, table)} WHERE {quoted} = ANY (%s::bigint[])"  # noqa: S608
    for batch in batches(ids, _ROWS_A_STATEMENT, most_bytes=_BYTES_A_STATEMENT):
        connection.exec_driver_sql(statement, (array_text(batch),))


def bulk_delete_keys(connection: Connection, table: Table, columns: Sequence[str], keys: Rows) -> None:
    """Delete with DELETE ... USING unnest: one array a column."""
    quoted = [connection.dialect.identifier_preparer.quote(name) for name in columns]
    arrays = ", ".join(f"%s::{_array_type(connection, table, name)}" for name in columns)
    are_equal = " AND ".join(f"old.{name} = gone.{name}" for name in quoted)
    statement = (
        f"DELETE FROM {_name(connection, table)} AS old "  # noqa: S608 - names are quoted
        f"USING unnest({arrays}) AS gone ({', '.join(quoted)}) WHERE {are_equal}"
    )
    for batch in row_batches(table, columns, keys, _ROWS_A_STATEMENT, _BYTES_A_STATEMENT):
        connection.exec_driver_sql(statement, tuple(map(array_text, zip(*batch, strict=True))))


def drop_old_versions(connection: Connection, table: Table) -> None:
    """Write the table and its indexes anew with CLUSTER: in a transaction, where VACUUM FULL cannot run."""
    key = inspect(connection).get_pk_constraint(table.name, table.schema)["name"]
    quoted = connection.dialect.identifier_preparer.quote(str(key))
    connection.exec_driver_sql(f"CLUSTER {_name(connection, table)} USING {quoted}")


def refresh_statistics(engine: Engine, table: Table) -> None:
    """Run ANALYZE; the visibility map is left to autovacuum, since VACUUM runs in no transaction."""
    with write_transaction(engine) as connection:
        connection.exec_driver_sql(f"ANALYZE {_name(connection, table)}")


def take_changes(
    connection: Connection, queue: Table, table_id: int, limit: int, row_key: str | None
) -> list[tuple[str, str]]:
    """Delete with RETURNING; rows that are being written are not seen, so that nothing is waited for.

    The statement returns them by their places in the table, so they are sorted here.
    """
    places = oldest_changes(queue, [column("ctid")], table_id, limit, row_key).scalar_subquery()
    statement = (
        delete(queue)
        .where(column("ctid") == any_(func.array(places)))
        .returning(queue.c.row_key, queue.c.operation, queue.c.queued_at)
    )
    rows = sorted(connection.execute(statement).all(), key=itemgetter(2))
    return [(row[0], row[1]) for row in rows]


def _name(connection: Connection, table: Table) -> str:
    return connection.dialect.identifier_preparer.format_table(table)


def _array_type(connection: Connection, table: Table, column: str) -> str:
    kind = table.c[column].type.compile(dialect=connection.dialect)
    return f"{kind.partition(' COLLATE ')[0]}[]"
