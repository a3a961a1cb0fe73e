"""How many rows are stored of a table, so that `status` need not count them.

The count is NULL until the next scan; until then they are counted.

Revision: 0017
After: 0016
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import add_column, drop_column
from db_dedup.schema.types import RowId

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    add_column(op, namespace, "watched_table", sa.Column("row_count", RowId))


def downgrade(op: Operations, namespace: Namespace) -> None:
    drop_column(op, namespace, "watched_table", "row_count")
