"""The setting `bands` of stored definitions is called `sketches`.

Revision: 0004
After: 0003
"""

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.definitions import rewritten

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Definition = dict[str, Any]


def upgrade(op: Operations, namespace: Namespace) -> None:
    _rewrite(op, namespace, lambda definition: rewritten(definition, 3))


def downgrade(op: Operations, namespace: Namespace) -> None:
    _rewrite(op, namespace, _former)


def _former(definition: Definition) -> Definition:
    """Return the definition in format 2."""
    renamed = {"bands" if name == "sketches" else name: value for name, value in definition.items()}
    return {**renamed, "format": 2}


def _rewrite(op: Operations, namespace: Namespace, change: Callable[[Definition], Definition]) -> None:
    """Change every stored definition; there is none while SQL is only printed, for an empty database."""
    if op.get_context().as_sql:
        return
    columns: list[sa.ColumnClause[Any]] = [sa.column("id"), sa.column("definition")]
    table = sa.table(namespace.name("watched_table"), *columns, schema=namespace.schema)
    for table_id, text in op.get_bind().execute(sa.select(table.c.id, table.c.definition)).all():
        changed = json.dumps(change(json.loads(text)), ensure_ascii=False)
        op.execute(sa.update(table).where(table.c.id == table_id).values(definition=changed))
