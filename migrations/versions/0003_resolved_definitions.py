"""Stored definitions hold the resolved rule, their format and the version of their recipe.

Revision: 0003
After: 0002
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.definitions import rewritten

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade(op: Operations, namespace: Namespace) -> None:
    for table_id, document in _definitions(op, namespace):
        _store(op, namespace, table_id, document)


def downgrade(op: Operations, namespace: Namespace) -> None:
    """Name a preset again (every field of the rule is given, so it does not matter which). An answer that
    former versions cannot judge serves no longer, and no scan takes it up again."""
    table, scan = _watched_table(namespace), _scan(namespace)
    for table_id, document in _definitions(op, namespace):
        settings = {k: v for k, v in document.items() if k not in ("format", "recipe_version")}
        _store(op, namespace, table_id, {**settings, "preset": "balanced"})
        if document["recipe_version"] != 1:
            op.execute(sa.update(table).where(table.c.id == table_id).values(recipe=None, recipe_digest=None))
            op.execute(sa.update(scan).where(scan.c.table_id == table_id).values(recipe_digest=""))


def _definitions(op: Operations, namespace: Namespace) -> list[tuple[int, dict[str, object]]]:
    """(table id, its definition in format 2); none while SQL is only printed, for an empty database."""
    if op.get_context().as_sql:
        return []
    table = _watched_table(namespace)
    found = op.get_bind().execute(sa.select(table.c.id, table.c.definition)).all()
    return [(table_id, rewritten(json.loads(text), 2)) for table_id, text in found]


def _store(op: Operations, namespace: Namespace, table_id: int, document: dict[str, object]) -> None:
    table = _watched_table(namespace)
    text = json.dumps(document, ensure_ascii=False)
    op.execute(sa.update(table).where(table.c.id == table_id).values(definition=text))


def _watched_table(namespace: Namespace) -> sa.TableClause:
    return _table(namespace, "watched_table", "id", "definition", "recipe", "recipe_digest")


def _scan(namespace: Namespace) -> sa.TableClause:
    return _table(namespace, "scan", "table_id", "recipe_digest")


def _table(namespace: Namespace, base: str, *columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)
