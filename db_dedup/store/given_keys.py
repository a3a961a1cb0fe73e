"""Rows by keys that people typed or gave in a file; some may be no keys at all."""

from collections.abc import Sequence

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DataError

from db_dedup.errors import InvalidArgumentError
from db_dedup.flow.rows.keys import may_be_key
from db_dedup.records import SourceRow
from db_dedup.store.source import OpenConnection, Source


def require_keys(connection: Connection, source: Source, row_keys: Sequence[str]) -> None:
    """Check that the database can look for rows of these keys, whether they are there or not.

    Args:
        connection: in a transaction, which goes on after an error.
        source: of the rows.
        row_keys: as `Source.row_key_of` gives them.

    Raises:
        InvalidArgumentError: it can make no value of the type of a key column of one of them.
    """
    if not source.dialect.capabilities.refuses_keys:
        return  # the query would tell nothing, and would lock gaps between keys
    wanted = source.dialect.key_list(row_keys)
    matches = source.dialect.key_matches(source.key_columns, source.from_clause, wanted.c.row_key)
    # The database must evaluate the keys even if the table is empty. It may leave this out for an inner join,
    # and for an outer join of which no column is used.
    column = source.from_clause.c[source.key_columns[0].name]
    query = select(func.count(column)).select_from(wanted.outerjoin(source.from_clause, matches))
    try:
        # The savepoint is outside: after an error it gives the session its settings back.
        with connection.begin_nested(), source.dialect.settled(connection):
            connection.execute(query)
    except DataError as error:
        raise InvalidArgumentError(
            "no row of {table!r} can have one of these keys: {keys}",
            table=source.table.name,
            keys=", ".join(repr(key[:40]) for key in row_keys[:10]),
        ) from error


def read_given(open_connection: OpenConnection, source: Source, row_keys: Sequence[str]) -> list[SourceRow]:
    """Return the rows of these keys; a text that is no key of a row is left out."""
    keys = [key for key in dict.fromkeys(row_keys) if may_be_key(key, len(source.key_columns))]
    try:
        with open_connection() as connection:
            return list(source.read_rows(connection, keys))
    except DataError:  # the database cannot make a value of the column's type of one of them
        if len(keys) == 1:
            return []
    return [row for key in keys for row in read_given(open_connection, source, [key])]
