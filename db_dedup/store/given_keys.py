"""Rows by keys that people typed or gave in a file; some may be no keys at all."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from sqlalchemy import Connection
from sqlalchemy.exc import DataError

from db_dedup.flow.rows.keys import may_be_key
from db_dedup.records import SourceRow
from db_dedup.store.source import Source

OpenConnection = Callable[[], AbstractContextManager[Connection]]


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
