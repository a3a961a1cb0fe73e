"""What the catalogue of MySQL and MariaDB has about the user's tables and inspection does not return."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, text

# The catalogue compares names without regard to case, also where the server keeps tables apart by it.
_IS_TABLE: Final = """
    {0}.table_schema = COALESCE(:schema, DATABASE()) AND {0}.table_name = :table
    AND (@@lower_case_table_names > 0
      OR (CONVERT({0}.table_schema USING utf8mb4) COLLATE utf8mb4_bin = COALESCE(:schema, DATABASE())
        AND CONVERT({0}.table_name USING utf8mb4) COLLATE utf8mb4_bin = :table))
"""
_OF_COLUMNS: Final = _IS_TABLE.format("columns")
_NAMES: Final = text(f"""
    SELECT column_name FROM information_schema.columns WHERE {_OF_COLUMNS} ORDER BY ordinal_position
""")  # noqa: S608 - our own text
_COLLATIONS: Final = text(f"""
    SELECT column_name, collation_name FROM information_schema.columns
    WHERE {_OF_COLUMNS} AND collation_name IS NOT NULL
""")  # noqa: S608
_INDEX_COLUMNS: Final = text(f"""
    SELECT statistics.column_name
    FROM information_schema.statistics JOIN information_schema.columns
    ON columns.column_name = statistics.column_name
    WHERE {_IS_TABLE.format("statistics")} AND {_OF_COLUMNS} AND index_name = :index
      AND COALESCE(generation_expression, '') <> 'ROW END'
    ORDER BY seq_in_index
""")  # noqa: S608


def column_names(
    connection: Connection, table: str, schema: str | None, found: Sequence[str]
) -> Sequence[str]:
    """Return the names as they are: inspection doubles each backtick."""
    if not any("`" in name for name in found):
        return found
    return list(connection.execute(_NAMES, {"table": table, "schema": schema}).scalars())


def column_collations(connection: Connection, table: str, schema: str | None) -> Mapping[str, str]:
    """Return the collation of every text column; inspection names only those unlike their table's."""
    rows = connection.execute(_COLLATIONS, {"table": table, "schema": schema})
    return {str(name): str(collation) for name, collation in rows}


def unique_columns(
    connection: Connection, table: str, schema: str | None, index: str | None, found: Sequence[str]
) -> Sequence[str]:
    """Return the columns with those of a period (WITHOUT OVERLAPS), which only MariaDB has.

    Without them the values of the other columns are not unique. The end of a row's system time, which a table
    with such a period adds to each unique index, is left out: all current rows have the same.
    """
    if not getattr(connection.dialect, "is_mariadb", False):
        return found
    named = {"table": table, "schema": schema, "index": index or "PRIMARY"}
    stored = connection.execute(_INDEX_COLUMNS, named).scalars()
    return [name.replace("`", "``") for name in stored] or found  # as inspection writes names
