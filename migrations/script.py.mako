"""${message}.

Revision: ${up_revision}
After: ${down_revision | comma,n}
"""

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade(op: Operations, namespace: Namespace) -> None:
    ${downgrades if downgrades else "raise NotImplementedError"}
