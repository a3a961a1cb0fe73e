"""Repeatable steps of migrations: MySQL and MariaDB commit each one, and a migration may end early."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.views import AnySelect, CreateView, DropView, ReplaceView

_LAST_PIECE_OF_SETS = -(1 << 30) - 1


def add_column(op: Operations, namespace: Namespace, base: str, column: sa.Column[Any]) -> None:
    """Add a column to one of our tables, unless it is there."""
    if column.name not in (found["name"] for found in _found(op, namespace, base, "get_columns")):
        op.add_column(namespace.name(base), column, schema=quoted_schema(namespace))


def create_table(
    op: Operations, namespace: Namespace, base: str, *columns: sa.schema.SchemaItem, **options: Any
) -> None:
    """Make one of our tables, unless it is there."""
    if op.get_context().as_sql or not has_table(op, namespace, base):
        op.create_table(namespace.name(base), *columns, schema=namespace.schema, **options)


def drop_table(op: Operations, namespace: Namespace, base: str) -> None:
    """Drop one of our tables, unless it is gone."""
    if has_table(op, namespace, base):
        op.drop_table(namespace.name(base), schema=namespace.schema)


def has_table(op: Operations, namespace: Namespace, base: str) -> bool:
    """Return whether one of our tables is there."""
    return sa.inspect(op.get_bind()).has_table(namespace.name(base), namespace.schema)


def drop_column(op: Operations, namespace: Namespace, base: str, name: str) -> None:
    """Drop a column of one of our tables, unless it is gone."""
    if name in (found["name"] for found in _found(op, namespace, base, "get_columns")):
        op.drop_column(namespace.name(base), name, schema=quoted_schema(namespace))


def create_index(
    op: Operations,
    namespace: Namespace,
    base: str,
    name: str,
    columns: Sequence[str],
    where: str | None = None,
) -> None:
    """Make an index of one of our tables, unless there is one of these columns.

    It has the condition on SQLite and PostgreSQL. MySQL gives odd names otherwise than they were written.
    """
    condition = None if where is None else sa.text(where)
    if list(columns) not in (index["column_names"] for index in _found(op, namespace, base, "get_indexes")):
        op.create_index(
            namespace.name(name),
            namespace.name(base),
            list(columns),
            schema=namespace.schema,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def drop_index(op: Operations, namespace: Namespace, base: str, name: str) -> None:
    """Drop an index of one of our tables, unless it is gone."""
    found = (index["name"] for index in _found(op, namespace, base, "get_indexes"))
    if op.get_context().as_sql or namespace.name(name) in found:
        op.drop_index(namespace.name(name), namespace.name(base), schema=namespace.schema)


def replace_view(op: Operations, namespace: Namespace, base: str, query: AnySelect) -> None:
    """Create a view again, with the same columns or more after them; grants on it and views of it stay.

    A database without ALTER has no OR REPLACE, and no grants either: it drops and makes the view.
    """
    name, schema = namespace.name(base), namespace.schema
    if op.get_context().dialect.supports_alter:
        op.execute(ReplaceView(name, schema, query))
        return
    op.execute(DropView(name, schema))
    op.execute(CreateView(name, schema, query))


def quoted_schema(namespace: Namespace) -> sa.quoted_name | None:
    """Return our schema as one name: Alembic takes a name with a dot for two names, unless it is marked."""
    return None if namespace.schema is None else sa.quoted_name(namespace.schema, quote=True)


def delete_feature_sets(op: Operations, namespace: Namespace) -> None:
    """Delete all sets of features: a version that does not know their kind would miss duplicates."""
    row = sa.table(
        namespace.name("fingerprint"), sa.column("feature_set", sa.LargeBinary), schema=namespace.schema
    )
    segment = sa.table(
        namespace.name("sketch_segment"), sa.column("piece", sa.Integer), schema=namespace.schema
    )
    op.execute(sa.update(row).where(row.c.feature_set.is_not(None)).values(feature_set=None))
    op.execute(sa.delete(segment).where(segment.c.piece <= _LAST_PIECE_OF_SETS))


def _found(op: Operations, namespace: Namespace, base: str, what: str) -> Sequence[Any]:
    """Return what a table has; nothing while SQL is only printed, for an empty database."""
    if op.get_context().as_sql:
        return ()
    found: Sequence[Any] = getattr(sa.inspect(op.get_bind()), what)(namespace.name(base), namespace.schema)
    return found
