"""Give the queue of changes a primary key.

Logical replication on PostgreSQL needs one for DELETE, and group replication of MySQL and MariaDB for every
table. The index by which the queue is read becomes the key. Its last column keeps two changes apart that one
row has within a microsecond; its default counts nothing, so that no session of the host's sees a number.
Triggers that exist go on: they name the columns that they write.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from db_dedup.records.names import Namespace
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import ExactText, KeyText, Timestamp

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_COLUMNS = ("table_id", "row_key", "operation", "queued_at")
_KEY = ("table_id", "queued_at", "row_key", "nonce")
_COUNTER = "(uuid_short() & 9223372036854775807)"


def upgrade(op: Operations, namespace: Namespace) -> None:
    _UPGRADES[op.get_context().dialect.name](op, namespace)


def downgrade(op: Operations, namespace: Namespace) -> None:
    _DOWNGRADES[op.get_context().dialect.name](op, namespace)


class _Statement(ExecutableDDLElement):
    """SQL about the queue, with quoted names in the place of `{table}` and the like."""

    inherit_cache = False

    def __init__(self, sql: str, names: Namespace) -> None:
        self.sql, self.names = sql, names


@compiles(_Statement)
def _sql_of(element: _Statement, compiler: DDLCompiler, **_: Any) -> str:
    preparer, names = compiler.preparer, element.names
    return element.sql.format(
        table=preparer.format_table(sa.table(names.name("change"), schema=names.schema)),
        index=preparer.quote(names.name("change_queue")),
        kept=preparer.quote(names.name("kept_changes")),
        counter=_COUNTER,
        columns=", ".join(_COLUMNS),
        key=", ".join(_KEY),
    )


def _upgrade_postgresql(op: Operations, names: Namespace) -> None:
    new = "ADD COLUMN nonce uuid DEFAULT gen_random_uuid() NOT NULL"
    op.execute(_Statement(f"ALTER TABLE {{table}} {new}", names))
    op.execute(_Statement("ALTER TABLE {table} ADD PRIMARY KEY ({key})", names))
    op.drop_index(names.name("change_queue"), names.name("change"), schema=names.schema)


def _downgrade_postgresql(op: Operations, names: Namespace) -> None:
    op.execute(_Statement("ALTER TABLE {table} DROP COLUMN nonce", names))
    _create_index(op, names)


def _upgrade_mysql(op: Operations, names: Namespace) -> None:
    """Each statement is committed at once, so each is left out where it was run before."""
    columns, made_key = _found(op, names)
    if "nonce" not in columns:
        # A default that gives each row its own value cannot be added to rows where a binary log is written.
        op.execute(_Statement("ALTER TABLE {table} ADD COLUMN nonce BIGINT NOT NULL DEFAULT 0", names))
    if made_key != list(_KEY):
        op.execute(_Statement("ALTER TABLE {table} ALTER COLUMN nonce SET DEFAULT {counter}", names))
        op.execute(_Statement("UPDATE {table} SET nonce = {counter} WHERE nonce = 0", names))
        old = "DROP PRIMARY KEY, DROP COLUMN id, " if "id" in columns else ""
        new = "DROP INDEX {index}, ADD PRIMARY KEY ({key})"
        op.execute(_Statement(f"ALTER TABLE {{table}} {old}{new}", names))


def _downgrade_mysql(op: Operations, names: Namespace) -> None:
    columns, _ = _found(op, names)
    if "nonce" in columns:
        old = "DROP PRIMARY KEY, DROP COLUMN nonce"
        new = "ADD COLUMN id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST, ADD INDEX {index}"
        op.execute(_Statement(f"ALTER TABLE {{table}} {old}, {new} (table_id, queued_at, row_key)", names))


def _found(op: Operations, names: Namespace) -> tuple[list[str], list[str]]:
    """The columns of the queue and of its key: as they are, or in a script as the step before leaves them."""
    if op.get_context().as_sql:
        return ["id", *_COLUMNS], ["id"]
    inspector, table = sa.inspect(op.get_bind()), names.name("change")
    columns = [column["name"] for column in inspector.get_columns(table)]
    return columns, inspector.get_pk_constraint(table)["constrained_columns"]


def _upgrade_sqlite(op: Operations, names: Namespace) -> None:
    random = sa.text("(random())")
    nonce = sa.Column("nonce", sa.BigInteger, server_default=random, nullable=False)
    _make_again(op, names, nonce, sa.PrimaryKeyConstraint(*_KEY))


def _downgrade_sqlite(op: Operations, names: Namespace) -> None:
    _make_again(op, names)
    _create_index(op, names)


def _make_again(op: Operations, names: Namespace, *more: sa.schema.SchemaItem) -> None:
    """SQLite adds no key to a table, and renames none that a trigger on the host's tables names."""
    op.execute(_Statement("CREATE TEMPORARY TABLE {kept} AS SELECT {columns} FROM {table}", names))
    op.drop_table(names.name("change"))
    op.create_table(
        names.name("change"),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("row_key", KeyText, nullable=False),
        sa.Column("operation", ExactText(1), nullable=False),
        sa.Column("queued_at", Timestamp, nullable=False),
        *more,
        **TABLE_OPTIONS,
    )
    op.execute(_Statement("INSERT INTO {table} ({columns}) SELECT {columns} FROM temp.{kept}", names))
    op.execute(_Statement("DROP TABLE temp.{kept}", names))


def _create_index(op: Operations, names: Namespace) -> None:
    columns = ["table_id", "queued_at", "row_key"]
    op.create_index(names.name("change_queue"), names.name("change"), columns, schema=names.schema)


_UPGRADES: dict[str, Callable[[Operations, Namespace], Any]] = {
    "postgresql": _upgrade_postgresql,
    "mysql": _upgrade_mysql,
    "mariadb": _upgrade_mysql,
    "sqlite": _upgrade_sqlite,
}
_DOWNGRADES: dict[str, Callable[[Operations, Namespace], Any]] = {
    "postgresql": _downgrade_postgresql,
    "mysql": _downgrade_mysql,
    "mariadb": _downgrade_mysql,
    "sqlite": _downgrade_sqlite,
}
