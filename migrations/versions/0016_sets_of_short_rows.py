"""A short row has a set, too: the number of its features, which rules out pairs with longer rows.

Nothing is changed here. Rows without a set are read as before. A row gets its set when its text changes, and
all rows by `scan --rebuild`.

Revision: 0016
After: 0015
"""

from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import delete_feature_sets

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    """Change nothing; only the program must know the sets of short rows."""


def downgrade(op: Operations, namespace: Namespace) -> None:
    """Delete the sets: by those of short rows the former version would miss duplicates."""
    delete_feature_sets(op, namespace)
