"""What the catalogue of MySQL and MariaDB has about the user's tables and inspection does not return."""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    TableClause,
    and_,
    bindparam,
    cast,
    collate,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
)
from sqlalchemy.dialects.mysql import CHAR

SCHEMA: Final = "information_schema"

_COLUMNS: Final = table(
    "columns",
    *map(column, ("table_schema", "table_name", "column_name", "ordinal_position", "collation_name")),
    column("generation_expression"),
    schema=SCHEMA,
)
_STATISTICS: Final = table(
    "statistics",
    *map(column, ("table_schema", "table_name", "column_name", "index_name", "seq_in_index")),
    schema=SCHEMA,
)


def _is_table(of: TableClause) -> ColumnElement[bool]:
    """Return the condition that a row of the catalogue belongs to the table of the parameters.

    The catalogue compares names without regard to case. Most servers on Linux keep tables apart by it, so the
    names are compared once more. The plain comparisons let the server open this table alone.
    """
    wanted: list[ColumnElement[str]] = [
        func.coalesce(bindparam("schema"), func.database()),
        bindparam("table"),
    ]
    names = of.c.table_schema, of.c.table_name
    exact = [collate(cast(name, CHAR(charset="utf8mb4")), "utf8mb4_bin") for name in names]
    keeps_no_case = literal_column("@@lower_case_table_names") > 0
    return and_(
        *(name == one for name, one in zip(names, wanted, strict=True)),
        or_(keeps_no_case, and_(*(name == one for name, one in zip(exact, wanted, strict=True)))),
    )


_NAMES: Final = (
    select(_COLUMNS.c.column_name).where(_is_table(_COLUMNS)).order_by(_COLUMNS.c.ordinal_position)
)
_COLLATIONS: Final = select(_COLUMNS.c.column_name, _COLUMNS.c.collation_name).where(
    _is_table(_COLUMNS), _COLUMNS.c.collation_name.is_not(None)
)
_INDEX_COLUMNS: Final = (
    select(_STATISTICS.c.column_name)
    .join_from(_STATISTICS, _COLUMNS, _COLUMNS.c.column_name == _STATISTICS.c.column_name)
    .where(_is_table(_STATISTICS), _is_table(_COLUMNS), _STATISTICS.c.index_name == bindparam("index"))
    .where(func.coalesce(_COLUMNS.c.generation_expression, "") != "ROW END")
    .order_by(_STATISTICS.c.seq_in_index)
)


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
