"""Frames of a recipe, kinds of pairs, and the settings of both.

The view `duplicate_pairs` gets three columns after its others. Pairs that are stored have no kind until the
next scan. Indexes and all other tables stay as they are.

Revision: 0005
After: 0004
"""

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.definitions import rewritten
from db_dedup.schema.migration_steps import add_column, create_table, drop_column, drop_table, replace_view
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import ExactText, LongText, RowId, Timestamp
from db_dedup.schema.views import AnySelect, CreateView, DropView

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Definition = dict[str, Any]
_ADDED = ("frames", "short_threshold", "long_grams", "exclude_kinds", "frame_drift")


def upgrade(op: Operations, namespace: Namespace) -> None:
    add_column(op, namespace, "pair", sa.Column("kind", sa.SmallInteger))
    add_column(op, namespace, "pair", sa.Column("contained_id", RowId))
    add_column(op, namespace, "pair", sa.Column("other_place", sa.Boolean))
    create_table(
        op,
        namespace,
        "frame_list",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("recipe", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", ExactText(64), nullable=False),
        sa.Column("row_count", RowId, nullable=False),
        sa.Column("sample_count", sa.Integer, nullable=False),
        sa.Column("grams", LongText, nullable=False),
        sa.Column("measured_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )
    replace_view(op, namespace, "duplicate_pairs", _duplicate_pairs(namespace, with_kinds=True))
    _rewrite(op, namespace, lambda definition: rewritten(definition, 4))


def downgrade(op: Operations, namespace: Namespace) -> None:
    _drop_view(op, namespace)
    drop_table(op, namespace, "frame_list")
    for column in ("other_place", "contained_id", "kind"):
        drop_column(op, namespace, "pair", column)
    _make_view(op, namespace, with_kinds=False)
    _rewrite(op, namespace, _former)


def _drop_view(op: Operations, namespace: Namespace) -> None:
    op.execute(DropView(namespace.name("duplicate_pairs"), namespace.schema))


def _make_view(op: Operations, namespace: Namespace, *, with_kinds: bool) -> None:
    query = _duplicate_pairs(namespace, with_kinds=with_kinds)
    op.execute(CreateView(namespace.name("duplicate_pairs"), namespace.schema, query))


def _table(namespace: Namespace, base: str, columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns.split()]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)


def _duplicate_pairs(namespace: Namespace, *, with_kinds: bool) -> AnySelect:
    watched = _table(namespace, "watched_table", "id name recipe").alias("watched")
    pair = _table(
        namespace, "pair", "id_a id_b distance similarity found_at kind contained_id other_place"
    ).alias("pair")
    fingerprint = _table(namespace, "fingerprint", "id table_id recipe row_key copy_of found_at")
    a, b = fingerprint.alias("a"), fingerprint.alias("b")
    names = ("copy", "edited", "contained", "partial")
    kind = sa.case(*((pair.c.kind == number, name) for number, name in enumerate(names)))
    contained = sa.case(
        (pair.c.contained_id == a.c.id, a.c.row_key), (pair.c.contained_id == b.c.id, b.c.row_key)
    )
    pairs = (
        sa.select(
            watched.c.name.label("table_name"),
            a.c.row_key.label("key_a"),
            b.c.row_key.label("key_b"),
            pair.c.distance.label("distance"),
            pair.c.similarity.label("similarity"),
            pair.c.found_at.label("found_at"),
        )
        .select_from(pair)
        .join(a, a.c.id == pair.c.id_a)
        .join(b, b.c.id == pair.c.id_b)
        .join(watched, _serves(a, watched))
    )
    original, copy = fingerprint.alias("original"), fingerprint.alias("copy")
    links = (
        sa.select(
            watched.c.name,
            original.c.row_key,
            copy.c.row_key,
            sa.literal_column("0"),
            sa.literal_column("1.0"),
            copy.c.found_at,
        )
        .select_from(copy)
        .join(original, original.c.id == copy.c.copy_of)
        .join(watched, _serves(original, watched))
        .where(copy.c.copy_of > 0)
    )
    if with_kinds:
        pairs = pairs.add_columns(
            kind.label("kind"), contained.label("contained_key"), pair.c.other_place.label("other_place")
        )
        links = links.add_columns(sa.literal_column("'copy'"), sa.null(), sa.false())
    return sa.union_all(pairs, links)


def _serves(row: sa.FromClause, watched: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(row.c.table_id == watched.c.id, row.c.recipe == watched.c.recipe)


def _former(definition: Definition) -> Definition:
    """Return the definition in format 3."""
    kept = {name: value for name, value in definition.items() if name not in _ADDED}
    return {**kept, "format": 3}


def _rewrite(op: Operations, namespace: Namespace, change: Callable[[Definition], Definition]) -> None:
    """Change every stored definition; there is none while SQL is only printed, for an empty database."""
    if op.get_context().as_sql:
        return
    columns: list[sa.ColumnClause[Any]] = [sa.column("id"), sa.column("definition")]
    table = sa.table(namespace.name("watched_table"), *columns, schema=namespace.schema)
    for table_id, text in op.get_bind().execute(sa.select(table.c.id, table.c.definition)).all():
        changed = json.dumps(change(json.loads(text)), ensure_ascii=False)
        op.execute(sa.update(table).where(table.c.id == table_id).values(definition=changed))
