"""The index of exact duplicates has these alone, and no longer all rows that are none.

SQLite took the others, nearly all rows, for a few, and read them all to find the rows of some groups.

Revision: 0014
After: 0013
"""

from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import create_index, drop_index

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    drop_index(op, namespace, "fingerprint", "fingerprint_copy_of")
    create_index(op, namespace, "fingerprint", "fingerprint_copy_of", ["copy_of"], "copy_of IS NOT NULL")


def downgrade(op: Operations, namespace: Namespace) -> None:
    drop_index(op, namespace, "fingerprint", "fingerprint_copy_of")
    create_index(op, namespace, "fingerprint", "fingerprint_copy_of", ["copy_of"])
