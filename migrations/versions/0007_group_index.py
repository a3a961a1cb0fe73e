"""An index of groups by their size, and the views that use it.

Revision: 0007
After: 0006
"""

from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import create_index, drop_index, replace_view
from db_dedup.schema.views import AnySelect

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = ["table_id", "recipe", "group_size", "row_key", "is_loose", "is_abridged"]


def upgrade(op: Operations, namespace: Namespace) -> None:
    where = "group_size IS NOT NULL"
    create_index(op, namespace, "fingerprint", "fingerprint_group_size", _COLUMNS, where)
    for base, query in _VIEWS.items():
        replace_view(op, namespace, base, query(namespace, by_size=True))


def downgrade(op: Operations, namespace: Namespace) -> None:
    for base, query in _VIEWS.items():
        replace_view(op, namespace, base, query(namespace, by_size=False))
    drop_index(op, namespace, "fingerprint", "fingerprint_group_size")


def _duplicate_groups(namespace: Namespace, *, by_size: bool) -> AnySelect:
    watched, first, _ = _tables(namespace)
    by_id = sa.and_(first.c.group_id > 0, first.c.group_id == first.c.id)
    return (
        sa.select(
            watched.c.name.label("table_name"),
            first.c.row_key.label("group_id"),
            first.c.group_size.label("size"),
            first.c.row_key.label("representative_key"),
            sa.func.coalesce(first.c.is_loose, sa.false()).label("is_loose"),
            sa.func.coalesce(first.c.is_abridged, sa.false()).label("is_abridged"),
        )
        .select_from(first)
        .join(watched, _serves(first, watched))
        .where(first.c.group_size > 0 if by_size else by_id)
    )


def _duplicate_members(namespace: Namespace, *, by_size: bool) -> AnySelect:
    watched, first, member = _tables(namespace)
    is_first = first.c.group_size > 0 if by_size else first.c.group_id > 0
    return (
        sa.select(
            watched.c.name.label("table_name"),
            first.c.row_key.label("group_id"),
            member.c.row_key.label("row_key"),
            (member.c.id == member.c.group_id).label("is_representative"),
        )
        .select_from(member)
        .join(first, first.c.id == member.c.group_id)
        .join(watched, _serves(first, watched))
        .where(is_first, member.c.group_id > 0)
    )


def _tables(namespace: Namespace) -> tuple[sa.FromClause, sa.FromClause, sa.FromClause]:
    watched = _table(namespace, "watched_table", "id name recipe").alias("watched")
    columns = "id table_id recipe row_key group_id group_size is_loose is_abridged"
    fingerprint = _table(namespace, "fingerprint", columns)
    return watched, fingerprint.alias("first"), fingerprint.alias("member")


def _table(namespace: Namespace, base: str, columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns.split()]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)


def _serves(row: sa.FromClause, watched: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(row.c.table_id == watched.c.id, row.c.recipe == watched.c.recipe)


_VIEWS = {"duplicate_groups": _duplicate_groups, "duplicate_members": _duplicate_members}
