"""Segments of the index of sketches.

Entries and sketches that are stored stay as they are: they count as single entries, and the worker or the
next scan folds them into segments.

Revision: 0006
After: 0005
"""

from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import add_column, create_table, drop_column, drop_table, has_table
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import Packed, RowId

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    add_column(op, namespace, "fingerprint", sa.Column("sketch_size", sa.SmallInteger))
    create_table(
        op,
        namespace,
        "sketch_index",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("recipe", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("piece_count", sa.Integer, nullable=False),
        sa.Column("entry_count", RowId, nullable=False),
        **TABLE_OPTIONS,
    )
    create_table(
        op,
        namespace,
        "sketch_segment",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("recipe", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("piece", sa.Integer, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("packed", Packed, nullable=False),
        sa.PrimaryKeyConstraint("table_id", "recipe", "generation", "piece", "part"),
        **TABLE_OPTIONS,
    )


def downgrade(op: Operations, namespace: Namespace) -> None:
    """An answer that has segments serves no longer, and no scan takes it up again: the sketches of its rows
    are not stored elsewhere. So it is with the rows of a scan that was killed before it wrote segments."""
    watched = _table(namespace, "watched_table", "id", "recipe", "recipe_digest")
    scan = _table(namespace, "scan", "table_id", "recipe_digest")
    index = _table(namespace, "sketch_index", "table_id")
    row = _table(namespace, "fingerprint", "table_id", "sketch_size")
    if has_table(op, namespace, "sketch_index"):  # else a downgrade that ended early has come past this
        # In a list: MySQL and MariaDB would search the large table for each row that is updated.
        sized = sa.select(row.c.table_id).where(row.c.sketch_size.is_not(None))
        found = sa.select(index.c.table_id).union(sized)
        indexed = list(op.get_bind().execute(found).scalars())
        op.execute(sa.update(scan).where(scan.c.table_id.in_(indexed)).values(recipe_digest=""))
        op.execute(
            sa.update(watched).where(watched.c.id.in_(indexed)).values(recipe=None, recipe_digest=None)
        )
    for name in ("sketch_segment", "sketch_index"):
        drop_table(op, namespace, name)
    drop_column(op, namespace, "fingerprint", "sketch_size")


def _table(namespace: Namespace, base: str, *columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)
