"""Values of a record that is not stored, and the names of types that inspection does not know."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, literal, select, text
from sqlalchemy.exc import DataError, ProgrammingError
from sqlalchemy.types import NullType

from db_dedup.dialects.postgresql import keys, sessions
from db_dedup.records import Family, SourceColumn

_SQL: Final = Path(__file__).with_name("sql")
_COLUMN_TYPES: Final = text((_SQL / "column_types.sql").read_text(encoding="utf-8"))
_FIND_TABLE: Final = text("SELECT CAST(to_regclass(:table) AS oid)")
_JSON: Final = ("JSON", "JSONB")
"""Types whose values are read as Python reads them."""


def as_stored(connection: Connection, given: Sequence[tuple[SourceColumn, object]]) -> list[object]:
    """Each value as `readable` would give it; one that the column's type cannot take stays as it is."""
    return [
        _as_stored(connection, column, value) if value is not None and _is_asked(column) else value
        for column, value in given
    ]


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


def _as_stored(connection: Connection, column: SourceColumn, value: object) -> object:
    given = keys.typed(column, literal(value, NullType()))
    try:
        with _savepoint(connection):
            return connection.execute(select(keys.readable(column, given))).scalar_one()
    except (DataError, ProgrammingError):  # no value of this type, or no type that the driver knows
        return value


def _savepoint(connection: Connection) -> AbstractContextManager[Any]:
    """A statement that fails ends no transaction of the caller's."""
    return nullcontext() if sessions.is_autocommit(connection) else connection.begin_nested()
