"""Values of a record that is not stored, as PostgreSQL would give them back."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from sqlalchemy import Connection, literal, select
from sqlalchemy.exc import DataError, ProgrammingError
from sqlalchemy.types import NullType

from db_dedup.dialects.batches import batches, bytes_of
from db_dedup.dialects.keys import dates_as_stored
from db_dedup.dialects.postgresql import keys, sessions
from db_dedup.records import Family, SourceColumn

_JSON: Final = ("JSON", "JSONB")
"""Types whose values are read as Python reads them."""
_VALUES_A_QUERY: Final = 500


def as_stored(connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> list[object]:
    """Return each value as `readable` would; a value that the column's type cannot take stays as it is."""
    stored = dates_as_stored(connection, given)
    asked = [i for i, (column, value) in enumerate(given) if value is not None and _is_asked(column)]
    for some in batches(asked, _VALUES_A_QUERY, lambda i: bytes_of(stored[i])):
        read = _as_stored(connection, [given[i] for i in some])
        for i, value in zip(some, read, strict=True):
            stored[i] = value
    return stored


def _is_asked(column: SourceColumn) -> bool:
    return column.family is Family.OTHER and bool(column.type_name) and column.type_name not in _JSON


def _as_stored(connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> Sequence[object]:
    """Read all by one statement; where that fails, each half by itself, down to single values."""
    typed = (keys.readable(column, keys.typed(column, literal(value, NullType()))) for column, value in given)
    query = select(*(value.label(f"dedup_{i}") for i, value in enumerate(typed)))
    try:
        with _savepoint(connection):
            return connection.execute(query).one()
    except (DataError, ProgrammingError):  # no value of this type, or no type that the driver knows
        if len(given) == 1:
            return [given[0][1]]
    half = len(given) // 2
    return [*_as_stored(connection, given[:half]), *_as_stored(connection, given[half:])]


def _savepoint(connection: Connection) -> AbstractContextManager[Any]:
    """Keep a statement that fails from ending the caller's transaction."""
    return nullcontext() if sessions.is_autocommit(connection) else connection.begin_nested()
