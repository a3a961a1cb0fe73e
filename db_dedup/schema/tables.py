"""Our tables in SQLAlchemy Core. `migrations/` makes them; a test checks that both are the same."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    UniqueConstraint,
)

from db_dedup.records.fingerprints import BLOCK_SHIFTS
from db_dedup.records.names import Namespace
from db_dedup.schema.types import (
    Digest,
    ExactText,
    Fingerprint,
    KeyText,
    LongText,
    NewNonce,
    Nonce,
    Packed,
    RowId,
    Sketch,
    Timestamp,
)

# Queue and pairs need transactions, whatever engine the server takes by default. An index of row keys needs a
# row format that takes more than 767 bytes of a key. SQLAlchemy leaves out the options of other dialects.
# Released migrations use this constant.
TABLE_OPTIONS: Final[dict[str, Any]] = {
    "mysql_engine": "InnoDB",
    "mysql_row_format": "DYNAMIC",
    "mariadb_engine": "InnoDB",
    "mariadb_row_format": "DYNAMIC",
}


@dataclass(frozen=True)
class Tables:
    """All our tables in one namespace."""

    namespace: Namespace
    metadata: MetaData
    watched_table: Table
    fingerprint: Table
    pair: Table
    band: Table
    sketch_index: Table
    sketch_segment: Table
    change: Table
    dead_change: Table
    verdict: Table
    scan: Table
    frame_list: Table
    reservation: Table
    group_change: Table


def block_expression(shift: int) -> str:
    """Return the SQL of a block column, the same in all dialects.

    An exact duplicate has no blocks. It is found through its canonical row, so that a million equal rows are
    not a million candidates.
    """
    return f"CASE WHEN copy_of IS NULL THEN (fingerprint >> {shift}) & 65535 END"


@lru_cache(maxsize=16)
def our_tables(namespace: Namespace) -> Tables:
    """Return the tables of one namespace."""
    metadata = MetaData(schema=namespace.schema)
    return Tables(
        namespace,
        metadata,
        _watched_table(metadata, namespace),
        _fingerprint(metadata, namespace),
        _pair(metadata, namespace),
        _band(metadata, namespace),
        _sketch_index(metadata, namespace),
        _sketch_segment(metadata, namespace),
        _change(metadata, namespace),
        _dead_change(metadata, namespace),
        _verdict(metadata, namespace),
        _scan(metadata, namespace),
        _frame_list(metadata, namespace),
        _reservation(metadata, namespace),
        _group_change(metadata, namespace),
    )


def _watched_table(metadata: MetaData, names: Namespace) -> Table:
    return Table(
        names.name("watched_table"),
        metadata,
        Column("id", Integer, primary_key=True),
        Column("name", ExactText(255), nullable=False),
        Column("definition", LongText, nullable=False),
        Column("recipe", Integer),
        Column("recipe_digest", ExactText(64)),
        Column("view_name", ExactText(64)),
        Column("view_digest", ExactText(64)),
        Column("trigger_digest", ExactText(64)),
        Column("attached_at", Timestamp),
        Column("answer_version", RowId, nullable=False, server_default="0"),
        Column("lease_owner", ExactText(255)),
        Column("lease_until", Timestamp),
        UniqueConstraint("name", name=names.name("watched_table_name_key")),
        **TABLE_OPTIONS,
    )


def _fingerprint(metadata: MetaData, names: Namespace) -> Table:
    table = Table(
        names.name("fingerprint"),
        metadata,
        Column("id", RowId, primary_key=True),
        Column("table_id", Integer, nullable=False),
        Column("recipe", Integer, nullable=False),
        Column("row_key", KeyText, nullable=False),
        Column("order_value", ExactText(64)),
        Column("fingerprint", Fingerprint),
        Column("digest", Digest, nullable=False),
        Column("copy_of", RowId),
        Column("group_id", RowId),
        Column("is_loose", Boolean),
        Column("is_abridged", Boolean),
        Column("group_size", Integer),
        Column("found_at", Timestamp),
        Column("sketch", Sketch),
        *(
            Column(f"block_{i}", Integer, Computed(block_expression(shift), persisted=True))
            for i, shift in enumerate(BLOCK_SHIFTS, 1)
        ),
        Column("sketch_size", SmallInteger),
        Column("feature_set", Sketch),
        Column("form", SmallInteger),
        # The key leads, so that a look-up in a view needs no table to use it.
        UniqueConstraint("row_key", "table_id", "recipe", name=names.name("fingerprint_row_key")),
        **TABLE_OPTIONS,
    )
    answer = (table.c.table_id, table.c.recipe, table.c.fingerprint, table.c.id)
    for i in range(1, 5):
        Index(names.name(f"fingerprint_block_{i}"), table.c[f"block_{i}"], *answer)
    Index(names.name("fingerprint_digest"), table.c.table_id, table.c.recipe, table.c.digest)
    # Of exact duplicates alone where the database can do that. SQLite counts NULL as one value among many:
    # with all rows in the index it takes those that are no exact duplicate, nearly all, for some dozen, and
    # reads them all wherever a query names some groups or digests.
    is_copy = table.c.copy_of.is_not(None)
    Index(names.name("fingerprint_copy_of"), table.c.copy_of, sqlite_where=is_copy, postgresql_where=is_copy)
    Index(names.name("fingerprint_group"), table.c.group_id)
    # All that a list of groups shows, of representatives alone where the database can do that.
    is_group = table.c.group_size.is_not(None)
    flags = (table.c.row_key, table.c.is_loose, table.c.is_abridged)
    Index(
        names.name("fingerprint_group_size"),
        *(table.c.table_id, table.c.recipe, table.c.group_size, *flags),
        sqlite_where=is_group,
        postgresql_where=is_group,
    )
    return table


def _pair(metadata: MetaData, names: Namespace) -> Table:
    table = Table(
        names.name("pair"),
        metadata,
        Column("id_a", RowId, primary_key=True, autoincrement=False),
        Column("id_b", RowId, primary_key=True, autoincrement=False),
        Column("distance", SmallInteger, nullable=False),
        Column("similarity", Double),
        Column("found_at", Timestamp, nullable=False),
        Column("kind", SmallInteger),
        Column("contained_id", RowId),
        Column("other_place", Boolean),
        **TABLE_OPTIONS,
    )
    Index(names.name("pair_id_b"), table.c.id_b)
    return table


def _band(metadata: MetaData, names: Namespace) -> Table:
    # The single entries of the index of sketches: of the rows that have changed since its segments were
    # written. The table is its own index where the database can do that.
    return Table(
        names.name("band"),
        metadata,
        Column("value", BigInteger, primary_key=True, autoincrement=False),
        Column("fingerprint_id", RowId, primary_key=True, autoincrement=False),
        **TABLE_OPTIONS,
        sqlite_with_rowid=False,
    )


def _sketch_index(metadata: MetaData, names: Namespace) -> Table:
    # Which segments are active: those of this generation, whose entries are cut into so many pieces.
    return Table(
        names.name("sketch_index"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("recipe", Integer, primary_key=True, autoincrement=False),
        Column("generation", Integer, nullable=False),
        Column("piece_count", Integer, nullable=False),
        Column("entry_count", RowId, nullable=False),
        **TABLE_OPTIONS,
    )


def _sketch_segment(metadata: MetaData, names: Namespace) -> Table:
    return Table(
        names.name("sketch_segment"),
        metadata,
        Column("table_id", Integer, nullable=False),
        Column("recipe", Integer, nullable=False),
        Column("generation", Integer, nullable=False),
        Column("piece", Integer, nullable=False),
        Column("part", Integer, nullable=False),
        Column("packed", Packed, nullable=False),
        PrimaryKeyConstraint("table_id", "recipe", "generation", "piece", "part"),
        **TABLE_OPTIONS,
    )


def _change(metadata: MetaData, names: Namespace) -> Table:
    # The key is the index by which the queue is read: triggers pay for one.
    return Table(
        names.name("change"),
        metadata,
        Column("table_id", Integer, nullable=False),
        Column("row_key", KeyText, nullable=False),
        Column("operation", ExactText(1), nullable=False),
        Column("queued_at", Timestamp, nullable=False),
        Column("nonce", Nonce, server_default=NewNonce(), nullable=False),
        PrimaryKeyConstraint("table_id", "queued_at", "row_key", "nonce"),
        **TABLE_OPTIONS,
    )


def _dead_change(metadata: MetaData, names: Namespace) -> Table:
    return Table(
        names.name("dead_change"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("row_key", KeyText, primary_key=True),
        Column("operation", ExactText(1), nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("error", LongText, nullable=False),
        Column("failed_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )


def _verdict(metadata: MetaData, names: Namespace) -> Table:
    # People's labels, by the digests of the two texts: a label no longer holds once either text changes.
    return Table(
        names.name("verdict"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("digest_a", Digest, primary_key=True),
        Column("digest_b", Digest, primary_key=True),
        Column("key_a", KeyText, nullable=False),
        Column("key_b", KeyText, nullable=False),
        Column("is_duplicate", Boolean, nullable=False),
        Column("decided_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )


def _frame_list(metadata: MetaData, names: Namespace) -> Table:
    # Hashes of the frame grams that a recipe leaves out: measured once, before its first page.
    return Table(
        names.name("frame_list"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("recipe", Integer, primary_key=True, autoincrement=False),
        Column("digest", ExactText(64), nullable=False),
        Column("row_count", RowId, nullable=False),
        Column("sample_count", Integer, nullable=False),
        Column("grams", LongText, nullable=False),
        Column("measured_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )


def _reservation(metadata: MetaData, names: Namespace) -> Table:
    # Records that are checked and not stored yet: hashes by which they are compared, and no text.
    return Table(
        names.name("reservation"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("name", ExactText(32), primary_key=True),
        Column("recipe", Integer, nullable=False),
        Column("row_key", KeyText),
        Column("expires_at", Timestamp, nullable=False),
        Column("packed", Packed, nullable=False),
        **TABLE_OPTIONS,
    )


def _group_change(metadata: MetaData, names: Namespace) -> Table:
    # What has become of groups whose id was that of other rows before. The version of the answer orders the
    # transactions that have written it, whatever their clocks say.
    table = Table(
        names.name("group_change"),
        metadata,
        Column("table_id", Integer, primary_key=True, autoincrement=False),
        Column("answer_version", RowId, primary_key=True, autoincrement=False),
        Column("place", Integer, primary_key=True, autoincrement=False),
        Column("kind", ExactText(20), nullable=False),
        Column("old_key", KeyText, nullable=False),
        Column("new_key", KeyText),
        Column("old_size", Integer, nullable=False),
        Column("moved", Integer, nullable=False),
        Column("new_size", Integer),
        Column("scan_id", RowId),
        Column("changed_at", Timestamp, nullable=False),
        **TABLE_OPTIONS,
    )
    Index(names.name("group_change_old_key"), table.c.old_key, table.c.table_id)
    Index(names.name("group_change_new_key"), table.c.new_key, table.c.table_id)
    return table


def _scan(metadata: MetaData, names: Namespace) -> Table:
    table = Table(
        names.name("scan"),
        metadata,
        Column("id", RowId, primary_key=True),
        Column("table_id", Integer, nullable=False),
        Column("recipe", Integer, nullable=False),
        Column("recipe_digest", ExactText(64), nullable=False),
        Column("state", ExactText(16), nullable=False),
        Column("owner", ExactText(255), nullable=False),
        Column("started_at", Timestamp, nullable=False),
        Column("finished_at", Timestamp),
        Column("row_count", RowId),
        Column("report", LongText),
        Column("error", LongText),
        **TABLE_OPTIONS,
    )
    Index(names.name("scan_table"), table.c.table_id, table.c.started_at)
    return table
