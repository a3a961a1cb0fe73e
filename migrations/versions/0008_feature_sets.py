"""The set of each row's features, which rules out candidates before their texts are read.

Rows that are stored have none: their texts are read, as before. A row gets one when its text changes, and all
rows by `scan --rebuild`.

Revision: 0008
After: 0007
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import add_column, drop_column
from db_dedup.schema.types import Sketch

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    add_column(op, namespace, "fingerprint", sa.Column("feature_set", Sketch))


def downgrade(op: Operations, namespace: Namespace) -> None:
    drop_column(op, namespace, "fingerprint", "feature_set")
