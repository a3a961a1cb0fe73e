"""Of a changed row only those hashes become single entries that the segments do not have for it.

Nothing is changed here. A bit for each such row is stored beside the segments when it changes.

Revision: 0017
After: 0016
"""

from typing import Any, Final

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_END_OF_BITS: Final = -(1 << 31) + (1 << 24)
"""The pieces with the bits of rows have lower numbers."""


def upgrade(op: Operations, namespace: Namespace) -> None:
    """Change nothing; only the program must know the bits."""


def downgrade(op: Operations, namespace: Namespace) -> None:
    """An answer that has such rows serves no longer, and no scan takes it up again: the former version would
    miss their duplicates."""
    watched = _table(namespace, "watched_table", "id", "recipe", "recipe_digest")
    scan = _table(namespace, "scan", "table_id", "recipe_digest")
    segment = _table(namespace, "sketch_segment", "table_id", "piece")
    # In a list: MySQL and MariaDB would search the large table for each row that is updated.
    found = sa.select(segment.c.table_id).where(segment.c.piece < _END_OF_BITS).distinct()
    changed = list(op.get_bind().execute(found).scalars())
    op.execute(sa.update(scan).where(scan.c.table_id.in_(changed)).values(recipe_digest=""))
    op.execute(sa.update(watched).where(watched.c.id.in_(changed)).values(recipe=None, recipe_digest=None))
    op.execute(sa.delete(segment).where(segment.c.piece < _END_OF_BITS))


def _table(namespace: Namespace, base: str, *columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)
