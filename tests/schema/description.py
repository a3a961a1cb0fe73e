"""A schema as the database itself describes it, for comparison."""

import re

from sqlalchemy import Connection, inspect, text

from db_dedup.records.names import Namespace

_POSTGRESQL = [
    """SELECT table_name, ordinal_position, column_name, data_type, character_maximum_length, collation_name,
              is_nullable, column_default, generation_expression
       FROM information_schema.columns WHERE table_schema = :schema ORDER BY 1, 2""",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = :schema ORDER BY 1",
    """SELECT relname, conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
       JOIN pg_class t ON t.oid = conrelid JOIN pg_namespace n ON n.oid = connamespace
       WHERE nspname = :schema AND contype <> 'n' ORDER BY 1, 2""",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = :schema ORDER BY 1",
]


def describe(connection: Connection, namespace: Namespace) -> list[str]:
    """Every table, column, collation, generated expression, index, constraint and view; our own name cut out.

    The version table is left out: it is not in our metadata.
    """
    lines = _DESCRIBERS[connection.dialect.name](connection, namespace)
    own_name = re.escape(f"{namespace.schema}." if namespace.schema else namespace.prefix)
    lines = [re.sub(rf"\b{own_name}", "", " ".join(line.split())) for line in lines]
    return [line for line in lines if "alembic_version" not in line]


def everything(connection: Connection) -> set[tuple[str, ...]]:
    """All that is in the user's database: schemas, tables, indexes, sequences, views and functions."""
    rows = [
        row for query in _EVERYTHING[connection.dialect.name] for row in connection.exec_driver_sql(query)
    ]
    return {tuple(" ".join(str(value).split()) for value in row) for row in rows}


def _describe_postgresql(connection: Connection, namespace: Namespace) -> list[str]:
    rows = [
        row for query in _POSTGRESQL for row in connection.execute(text(query), {"schema": namespace.schema})
    ]
    return [" | ".join(map(str, row)) for row in rows]


def _describe_mysql(connection: Connection, namespace: Namespace) -> list[str]:
    inspector = inspect(connection)
    names = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
    quote = connection.dialect.identifier_preparer.quote
    return [
        _sort_keys(connection.exec_driver_sql(f"SHOW CREATE TABLE {quote(name)}").one()[1])
        for name in names
        if name.startswith(namespace.prefix)
    ]


# MySQL names the tablespace of a table that ALTER TABLE has copied, where all tables share the system's.
_SHARED_SPACE = re.compile(r"/\*!50100 TABLESPACE `innodb_system` \*/ ")


def _sort_keys(definition: str) -> str:
    """Keys stand in the order in which they were made, which says nothing."""
    definition = _SHARED_SPACE.sub("", definition)
    lines = [line.strip().rstrip(",") for line in definition.splitlines()]
    keys = {line for line in lines if line.split(" ")[0] in ("KEY", "UNIQUE", "PRIMARY")}
    return " ".join([*(line for line in lines if line not in keys), *sorted(keys)])


def _describe_sqlite(connection: Connection, namespace: Namespace) -> list[str]:
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    return [row.sql for row in connection.execute(query) if row.name.startswith(namespace.prefix)]


_DESCRIBERS = {
    "postgresql": _describe_postgresql,
    "mysql": _describe_mysql,
    "mariadb": _describe_mysql,
    "sqlite": _describe_sqlite,
}

_EVERYTHING_MYSQL = [
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()",
    "SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = database()",
    "SELECT trigger_name, 'trigger' FROM information_schema.triggers WHERE trigger_schema = database()",
]
_EVERYTHING = {
    "postgresql": [
        "SELECT 'schema', nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp'",
        """SELECT relkind, nspname, relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
           WHERE nspname <> 'pg_toast' AND relpersistence = 'p'""",
        "SELECT 'function', oid::regprocedure::text FROM pg_proc",
        "SELECT 'type', typname FROM pg_type",
        "SELECT 'trigger', tgname FROM pg_trigger",
    ],
    "mysql": _EVERYTHING_MYSQL,
    "mariadb": _EVERYTHING_MYSQL,
    "sqlite": ["SELECT type, name, sql FROM sqlite_master"],
}
