"""The history of groups: which ids are no longer those of their groups, and what they have become.

Groups that have changed before this migration have no history.

Revision: 0011
After: 0010
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import create_index, create_table, drop_table
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import ExactText, KeyText, RowId, Timestamp

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    create_table(
        op,
        namespace,
        "group_change",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("answer_version", RowId, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", ExactText(20), nullable=False),
        sa.Column("old_key", KeyText, nullable=False),
        sa.Column("new_key", KeyText),
        sa.Column("old_size", sa.Integer, nullable=False),
        sa.Column("moved", sa.Integer, nullable=False),
        sa.Column("new_size", sa.Integer),
        sa.Column("scan_id", RowId),
        sa.Column("changed_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )
    for key in ("old_key", "new_key"):
        create_index(op, namespace, "group_change", f"group_change_{key}", [key, "table_id"])


def downgrade(op: Operations, namespace: Namespace) -> None:
    drop_table(op, namespace, "group_change")
