"""A set of 86 to 113 features has 2,048 places, so that it rules out pairs with long texts, too.

Nothing is changed here. Stored sets stay as they are and are read as before. A row gets one of the new kind
when its text changes, and all rows by `scan --rebuild`.

Revision: 0015
After: 0014
"""

from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import delete_feature_sets

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    """Change nothing; only the program must know the new kind of sets."""


def downgrade(op: Operations, namespace: Namespace) -> None:
    """Delete the sets: the former version misunderstands those of the new kind."""
    delete_feature_sets(op, namespace)
