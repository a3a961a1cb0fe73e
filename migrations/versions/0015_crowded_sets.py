"""A set of 86 to 113 features has 2,048 places, so that it rules out pairs with long texts, too.

Nothing is changed here. Stored sets stay as they are and are read as before. A row gets one of the new kind
when its text changes, and all rows by `scan --rebuild`.

Revision: 0015
After: 0014
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_LAST_PIECE_OF_SETS = -(1 << 30) - 1


def upgrade(op: Operations, namespace: Namespace) -> None:
    """Change nothing; only the program must know the new kind of sets."""


def downgrade(op: Operations, namespace: Namespace) -> None:
    """Delete all sets: the former version misunderstands those of the new kind, and would miss duplicates."""
    row = sa.table(
        namespace.name("fingerprint"), sa.column("feature_set", sa.LargeBinary), schema=namespace.schema
    )
    segment = sa.table(
        namespace.name("sketch_segment"), sa.column("piece", sa.Integer), schema=namespace.schema
    )
    op.execute(sa.update(row).where(row.c.feature_set.is_not(None)).values(feature_set=None))
    op.execute(sa.delete(segment).where(segment.c.piece <= _LAST_PIECE_OF_SETS))
