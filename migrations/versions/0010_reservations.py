"""Reservations: records that a client has checked and will store soon, without their texts.

Revision: 0010
After: 0009
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import create_table, drop_table
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import ExactText, KeyText, Packed, Timestamp

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    create_table(
        op,
        namespace,
        "reservation",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", ExactText(32), primary_key=True),
        sa.Column("recipe", sa.Integer, nullable=False),
        sa.Column("row_key", KeyText),
        sa.Column("expires_at", Timestamp, nullable=False),
        sa.Column("packed", Packed, nullable=False),
        **TABLE_OPTIONS,
    )


def downgrade(op: Operations, namespace: Namespace) -> None:
    drop_table(op, namespace, "reservation")
