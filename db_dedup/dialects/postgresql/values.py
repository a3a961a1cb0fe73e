"""Values of a record that is not stored, and the names of types that inspection does not know."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, literal, select, text
from sqlalchemy.exc import DataError, ProgrammingError
from sqlalchemy.types import NullType

from db_dedup.dialects.batches import batches, bytes_of
from db_dedup.dialects.postgresql import keys, sessions
from db_dedup.records import Family, SourceColumn

_SQL: Final = Path(__file__).with_name("sql")
_COLUMN_TYPES: Final = text((_SQL / "column_types.sql").read_text(encoding="utf-8"))
_FIND_TABLE: Final = text("SELECT CAST(to_regclass(:table) AS oid)")
_JSON: Final = ("JSON", "JSONB")
"""Types whose values are read as Python reads them."""
_VALUES_A_QUERY: Final = 500


def as_stored(connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> list[object]:
    """Each value as `readable` would give it; one that the column's type cannot take stays as it is."""
    stored = [value for _, value in given]
    asked = [i for i, (column, value) in enumerate(given) if value is not None and _is_asked(column)]
    for some in batches(asked, _VALUES_A_QUERY, lambda i: bytes_of(stored[i])):
        read = _as_stored(connection, [given[i] for i in some])
        for i, value in zip(some, read, strict=True):
            stored[i] = value
    return stored


def column_types(connection: Connection, table: str, schema: str | None) -> Mapping[str, str]:
    """Column -> type, as SQL writes it."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    name = quote(table) if schema is None else f"{quote(schema)}.{quote(table)}"
    relation = connection.scalar(_FIND_TABLE, {"table": name})
    with sessions.setting(connection, "search_path", "pg_catalog"):
        rows = connection.execute(_COLUMN_TYPES, {"table": relation})
        return {str(column): str(written) for column, written in rows}


def _is_asked(column: SourceColumn) -> bool:
    return column.family is Family.OTHER and bool(column.type_name) and column.type_name not in _JSON


def _as_stored(connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> Sequence[object]:
    """All by one statement; where that fails, each half by itself, down to the values that fail."""
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
    """A statement that fails ends no transaction of the caller's."""
    return nullcontext() if sessions.is_autocommit(connection) else connection.begin_nested()
