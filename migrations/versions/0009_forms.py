"""Forms of posts: whether a row is a retweet or a reply.

The view `duplicate_pairs` gets the column `form` after its others. Rows that are stored have no form until
the next scan, which fingerprints posts anew anyway.

Revision: 0009
After: 0008
"""

from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import add_column, drop_column, replace_view
from db_dedup.schema.views import AnySelect, CreateView, DropView

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_FORMS = ("none", "reply", "unofficial_retweet", "official_retweet")
_KINDS = ("copy", "edited", "contained", "partial")


def upgrade(op: Operations, namespace: Namespace) -> None:
    add_column(op, namespace, "fingerprint", sa.Column("form", sa.SmallInteger))
    replace_view(op, namespace, "duplicate_pairs", _duplicate_pairs(namespace, with_forms=True))


def downgrade(op: Operations, namespace: Namespace) -> None:
    _drop_view(op, namespace)
    drop_column(op, namespace, "fingerprint", "form")
    _make_view(op, namespace, with_forms=False)


def _drop_view(op: Operations, namespace: Namespace) -> None:
    op.execute(DropView(namespace.name("duplicate_pairs"), namespace.schema))


def _make_view(op: Operations, namespace: Namespace, *, with_forms: bool) -> None:
    query = _duplicate_pairs(namespace, with_forms=with_forms)
    op.execute(CreateView(namespace.name("duplicate_pairs"), namespace.schema, query))


def _table(namespace: Namespace, base: str, columns: str) -> sa.TableClause:
    named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns.split()]
    return sa.table(namespace.name(base), *named, schema=namespace.schema)


def _duplicate_pairs(namespace: Namespace, *, with_forms: bool) -> AnySelect:
    watched = _table(namespace, "watched_table", "id name recipe").alias("watched")
    pair = _table(
        namespace, "pair", "id_a id_b distance similarity found_at kind contained_id other_place"
    ).alias("pair")
    fingerprint = _table(namespace, "fingerprint", "id table_id recipe row_key copy_of found_at form")
    a, b = fingerprint.alias("a"), fingerprint.alias("b")
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
            sa.case(*((pair.c.kind == number, name) for number, name in enumerate(_KINDS))).label("kind"),
            contained.label("contained_key"),
            pair.c.other_place.label("other_place"),
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
            sa.literal_column("'copy'"),
            sa.null(),
            sa.false(),
        )
        .select_from(copy)
        .join(original, original.c.id == copy.c.copy_of)
        .join(watched, _serves(original, watched))
        .where(copy.c.copy_of > 0)
    )
    if with_forms:
        pairs = pairs.add_columns(_form(a, b).label("form"))
        links = links.add_columns(_form(original, copy))
    return sa.union_all(pairs, links)


def _form(one: sa.FromClause, other: sa.FromClause) -> sa.ColumnElement[str]:
    pairs = sa.and_(one.c.form.is_not(None), other.c.form.is_not(None))
    stronger = reversed(list(enumerate(_FORMS)))
    return sa.case(
        *((sa.and_(pairs, sa.or_(one.c.form == n, other.c.form == n)), name) for n, name in stronger)
    )


def _serves(row: sa.FromClause, watched: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(row.c.table_id == watched.c.id, row.c.recipe == watched.c.recipe)
