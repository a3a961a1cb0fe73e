"""The first tables and the four fixed views.

Written out, not taken from db_dedup.schema: a later change of tables or views must not change what this made.
"""

from collections.abc import Mapping

import sqlalchemy as sa
from alembic.operations import Operations

from db_dedup.records.names import Namespace
from db_dedup.schema.migration_steps import drop_table
from db_dedup.schema.tables import TABLE_OPTIONS
from db_dedup.schema.types import Digest, ExactText, Fingerprint, KeyText, LongText, RowId, Sketch, Timestamp
from db_dedup.schema.views import AnySelect, CreateView, DropView

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = ("watched_table", "fingerprint", "pair", "band", "change", "dead_change", "verdict", "scan")
_VIEWS = ("duplicate_pairs", "duplicate_groups", "duplicate_members", "queue_lag")
_BLOCK_SHIFTS = {"block_1": 48, "block_2": 32, "block_3": 16, "block_4": 0}


def upgrade(op: Operations, namespace: Namespace) -> None:
    watched_table = _create_watched_table(op, namespace)
    fingerprint = _create_fingerprint(op, namespace)
    pair = _create_pair(op, namespace)
    _create_band(op, namespace)
    change = _create_change(op, namespace)
    dead_change = _create_dead_change(op, namespace)
    _create_verdict(op, namespace)
    scan = _create_scan(op, namespace)
    views = (
        _duplicate_pairs(watched_table, fingerprint, pair),
        _duplicate_groups(watched_table, fingerprint),
        _duplicate_members(watched_table, fingerprint),
        _queue_lag(watched_table, change, dead_change, scan),
    )
    for base, query in zip(_VIEWS, views, strict=True):
        op.execute(CreateView(namespace.name(base), namespace.schema, query))


def downgrade(op: Operations, namespace: Namespace) -> None:
    for base in _VIEWS:
        op.execute(DropView(namespace.name(base), namespace.schema))
    for base in reversed(_TABLES):
        drop_table(op, namespace, base)


def _create(
    op: Operations,
    names: Namespace,
    base: str,
    *items: sa.schema.SchemaItem,
    indexes: Mapping[str, list[str]] | None = None,
) -> sa.Table:
    table = op.create_table(names.name(base), *items, schema=names.schema, **TABLE_OPTIONS)
    for index, columns in (indexes or {}).items():
        op.create_index(names.name(index), table.name, columns, schema=names.schema)
    return table


def _create_watched_table(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "watched_table",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", ExactText(255), nullable=False),
        sa.Column("definition", LongText, nullable=False),
        sa.Column("recipe", sa.Integer),
        sa.Column("recipe_digest", ExactText(64)),
        sa.Column("view_name", ExactText(64)),
        sa.Column("view_digest", ExactText(64)),
        sa.Column("trigger_digest", ExactText(64)),
        sa.Column("attached_at", Timestamp),
        sa.Column("answer_version", RowId, nullable=False, server_default="0"),
        sa.Column("lease_owner", ExactText(255)),
        sa.Column("lease_until", Timestamp),
        sa.UniqueConstraint("name", name=names.name("watched_table_name_key")),
    )


def _create_fingerprint(op: Operations, names: Namespace) -> sa.Table:
    blocks = {
        name: f"CASE WHEN copy_of IS NULL THEN (fingerprint >> {shift}) & 65535 END"
        for name, shift in _BLOCK_SHIFTS.items()
    }
    return _create(
        op,
        names,
        "fingerprint",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("recipe", sa.Integer, nullable=False),
        sa.Column("row_key", KeyText, nullable=False),
        sa.Column("order_value", ExactText(64)),
        sa.Column("fingerprint", Fingerprint),
        sa.Column("digest", Digest, nullable=False),
        sa.Column("copy_of", RowId),
        sa.Column("group_id", RowId),
        sa.Column("is_loose", sa.Boolean),
        sa.Column("is_abridged", sa.Boolean),
        sa.Column("group_size", sa.Integer),
        sa.Column("found_at", Timestamp),
        sa.Column("sketch", Sketch),
        *(sa.Column(name, sa.Integer, sa.Computed(sql, persisted=True)) for name, sql in blocks.items()),
        sa.UniqueConstraint("row_key", "table_id", "recipe", name=names.name("fingerprint_row_key")),
        indexes={
            **{
                f"fingerprint_{block}": [block, "table_id", "recipe", "fingerprint", "id"] for block in blocks
            },
            "fingerprint_digest": ["table_id", "recipe", "digest"],
            "fingerprint_copy_of": ["copy_of"],
            "fingerprint_group": ["group_id"],
        },
    )


def _create_pair(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "pair",
        sa.Column("id_a", RowId, primary_key=True, autoincrement=False),
        sa.Column("id_b", RowId, primary_key=True, autoincrement=False),
        sa.Column("distance", sa.SmallInteger, nullable=False),
        sa.Column("similarity", sa.Double),
        sa.Column("found_at", Timestamp, nullable=False),
        indexes={"pair_id_b": ["id_b"]},
    )


def _create_band(op: Operations, names: Namespace) -> sa.Table:
    return op.create_table(
        names.name("band"),
        sa.Column("value", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("fingerprint_id", RowId, primary_key=True, autoincrement=False),
        schema=names.schema,
        **TABLE_OPTIONS,
        sqlite_with_rowid=False,
    )


def _create_change(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "change",
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("row_key", KeyText, nullable=False),
        sa.Column("operation", ExactText(1), nullable=False),
        sa.Column("queued_at", Timestamp, nullable=False),
        indexes={"change_queue": ["table_id", "queued_at", "row_key"]},
    )


def _create_dead_change(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "dead_change",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("row_key", KeyText, primary_key=True),
        sa.Column("operation", ExactText(1), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("error", LongText, nullable=False),
        sa.Column("failed_at", Timestamp, nullable=False),
    )


def _create_verdict(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "verdict",
        sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest_a", Digest, primary_key=True),
        sa.Column("digest_b", Digest, primary_key=True),
        sa.Column("key_a", KeyText, nullable=False),
        sa.Column("key_b", KeyText, nullable=False),
        sa.Column("is_duplicate", sa.Boolean, nullable=False),
        sa.Column("decided_at", Timestamp, nullable=False),
    )


def _create_scan(op: Operations, names: Namespace) -> sa.Table:
    return _create(
        op,
        names,
        "scan",
        sa.Column("id", RowId, primary_key=True),
        sa.Column("table_id", sa.Integer, nullable=False),
        sa.Column("recipe", sa.Integer, nullable=False),
        sa.Column("recipe_digest", ExactText(64), nullable=False),
        sa.Column("state", ExactText(16), nullable=False),
        sa.Column("owner", ExactText(255), nullable=False),
        sa.Column("started_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sa.Column("row_count", RowId),
        sa.Column("report", LongText),
        sa.Column("error", LongText),
        indexes={"scan_table": ["table_id", "started_at"]},
    )


def _duplicate_pairs(watched_table: sa.Table, fingerprint: sa.Table, pair_table: sa.Table) -> AnySelect:
    watched, pair = watched_table.alias("watched"), pair_table.alias("pair")
    a, b = fingerprint.alias("a"), fingerprint.alias("b")
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
    zero, one = sa.literal_column("0", sa.SmallInteger), sa.literal_column("1.0", sa.Double)
    links = (
        sa.select(watched.c.name, original.c.row_key, copy.c.row_key, zero, one, copy.c.found_at)
        .select_from(copy)
        .join(original, original.c.id == copy.c.copy_of)
        .join(watched, _serves(original, watched))
        .where(copy.c.copy_of > 0)
    )
    return sa.union_all(pairs, links)


def _duplicate_groups(watched_table: sa.Table, fingerprint: sa.Table) -> AnySelect:
    watched, first = watched_table.alias("watched"), fingerprint.alias("first")
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
        .where(first.c.group_id > 0, first.c.group_id == first.c.id)
    )


def _duplicate_members(watched_table: sa.Table, fingerprint: sa.Table) -> AnySelect:
    watched = watched_table.alias("watched")
    first, member = fingerprint.alias("first"), fingerprint.alias("member")
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
        .where(first.c.group_id > 0, member.c.group_id > 0)
    )


def _queue_lag(watched_table: sa.Table, change: sa.Table, dead_change: sa.Table, scan: sa.Table) -> AnySelect:
    watched = watched_table.alias("watched")
    waiting = sa.select(sa.func.count()).select_from(change).where(change.c.table_id == watched.c.id)
    oldest = sa.select(sa.func.min(change.c.queued_at)).where(change.c.table_id == watched.c.id)
    dead = sa.select(sa.func.count()).select_from(dead_change).where(dead_change.c.table_id == watched.c.id)
    last_scan = sa.select(sa.func.max(scan.c.finished_at)).where(
        scan.c.state == "finished", scan.c.table_id == watched.c.id
    )
    return sa.select(
        watched.c.name.label("table_name"),
        waiting.scalar_subquery().label("waiting"),
        oldest.scalar_subquery().label("oldest_at"),
        dead.scalar_subquery().label("dead"),
        watched.c.attached_at.label("attached_at"),
        last_scan.scalar_subquery().label("last_scan_at"),
    )


def _serves(row: sa.FromClause, watched: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(row.c.table_id == watched.c.id, row.c.recipe == watched.c.recipe)
