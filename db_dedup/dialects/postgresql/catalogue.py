"""What PostgreSQL's catalogue has about the user's tables and inspection does not return."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text

from db_dedup.dialects.postgresql import sessions

_SQL: Final = Path(__file__).with_name("sql")
_COLUMN_TYPES: Final = text((_SQL / "column_types.sql").read_text(encoding="utf-8"))
_FIND_TABLE: Final = text("SELECT CAST(to_regclass(:table) AS oid)")
_FOUND_IN_SCHEMA: Final = text((_SQL / "list_found_in_schema.sql").read_text(encoding="utf-8"))
_PARTITIONS: Final = text((_SQL / "list_partitions.sql").read_text(encoding="utf-8"))


def type_names(connection: Connection, table: str, schema: str | None) -> Mapping[str, str]:
    """Return column -> type as SQL writes it, with its schema."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    name = quote(table) if schema is None else f"{quote(schema)}.{quote(table)}"
    relation = table_oid(connection, name)
    with sessions.setting(connection, "search_path", "pg_catalog"):
        rows = connection.execute(_COLUMN_TYPES, {"table": relation})
        return {str(column): str(written) for column, written in rows}


def table_oid(connection: Connection, name: str) -> int | None:
    """Return the number of a table by its quoted name, as the session finds it; None if there is none."""
    found: int | None = connection.scalar(_FIND_TABLE, {"table": name})
    return found


def partition_names(connection: Connection) -> set[str]:
    """Return the names of all partitions on the session's search path: they are listed as tables, too."""
    return set(connection.execute(_PARTITIONS).scalars())


def names_found_in(connection: Connection, schema: str) -> set[str]:
    """Return the tables and views that the session's search path leads to in this schema."""
    return set(connection.execute(_FOUND_IN_SCHEMA, {"schema": schema}).scalars())
