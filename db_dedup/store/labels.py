"""Labels: what people said of two texts, duplicates or not.

A label is stored under the digests of the two texts, so that it no longer applies once either text has
changed. The table has the former word for a label as its name: `verdict`.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from db_dedup.dialects.batches import batches
from db_dedup.records.fingerprints import DigestPair
from db_dedup.schema.tables import Tables
from db_dedup.store.fingerprints import FingerprintStore

_DIGESTS_A_QUERY = 1000


class StoredLabel(NamedTuple):
    """One label; `key_a` is the key of the row whose digest was `digest_a` when it was judged."""

    digest_a: bytes
    digest_b: bytes
    key_a: str
    key_b: str
    is_duplicate: bool
    decided_at: datetime

    @property
    def digests(self) -> DigestPair:
        """The digests that it is kept by."""
        return self.digest_a, self.digest_b


def sorted_label(
    one: tuple[bytes, str], other: tuple[bytes, str], is_duplicate: bool, decided_at: datetime
) -> StoredLabel:
    """Return a label on two rows, given as (digest, row key) in any order."""
    (digest_a, key_a), (digest_b, key_b) = sorted((one, other))
    return StoredLabel(digest_a, digest_b, key_a, key_b, is_duplicate, decided_at)


def read_labels(connection: Connection, tables: Tables, table_id: int) -> list[StoredLabel]:
    """Return all labels of a table, the oldest first, those of changed texts included."""
    c = tables.verdict.c
    query = (
        select(c.digest_a, c.digest_b, c.key_a, c.key_b, c.is_duplicate, c.decided_at)
        .where(c.table_id == table_id)
        .order_by(c.decided_at, c.digest_a, c.digest_b)
    )
    return [
        StoredLabel(bytes(row.digest_a), bytes(row.digest_b), *row[2:]) for row in connection.execute(query)
    ]


def current_labels(connection: Connection, store: FingerprintStore) -> list[StoredLabel]:
    """Return the labels that hold: both texts are among the stored rows."""
    found = read_labels(connection, store.tables, store.table_id)
    wanted = {digest for label in found for digest in label.digests}
    there = _stored_digests(connection, store, wanted)
    return [label for label in found if there.issuperset(label.digests)]


def read_rejected(connection: Connection, tables: Tables, table_id: int) -> set[DigestPair]:
    """Return the pairs of texts of a watched table that are labelled as no duplicates."""
    c = tables.verdict.c
    query = select(c.digest_a, c.digest_b).where(c.table_id == table_id, c.is_duplicate.is_(False))
    return {(bytes(a), bytes(b)) for a, b in connection.execute(query)}


def rejected_among(
    connection: Connection, tables: Tables, table_id: int, digests: Collection[bytes]
) -> set[DigestPair]:
    """Return the pairs of `read_rejected` whose texts are both among these."""
    if len(digests) < 2 or not _has_rejected(connection, tables, table_id):
        return set()
    c = tables.verdict.c
    query = select(c.digest_a, c.digest_b).where(c.table_id == table_id, c.is_duplicate.is_(False))
    known, found = set(digests), set()
    for some in batches(sorted(known), _DIGESTS_A_QUERY):
        for a, b in connection.execute(query.where(c.digest_a.in_(some))):
            if bytes(b) in known:
                found.add((bytes(a), bytes(b)))
    return found


def put_label(connection: Connection, tables: Tables, table_id: int, label: StoredLabel) -> None:
    """Store a label, in place of an earlier one on the same two texts."""
    values = label._asdict()
    new = insert(tables.verdict).values(table_id=table_id, **values)
    again = update(tables.verdict).where(_is_of(tables, table_id, label.digests)).values(values)
    if connection.execute(again).rowcount:
        return
    # Where two people label the same pair at once, the later label is kept.
    with suppress(IntegrityError), connection.begin_nested():
        connection.execute(new)
        return
    connection.execute(again)


def drop_labels(connection: Connection, tables: Tables, table_id: int, digests: Iterable[DigestPair]) -> int:
    """Delete labels. Return how many there were."""
    statements = (delete(tables.verdict).where(_is_of(tables, table_id, pair)) for pair in digests)
    return sum(connection.execute(statement).rowcount for statement in statements)


def canonical_keys(connection: Connection, store: FingerprintStore, digests: Collection[bytes]) -> list[str]:
    """Return the row keys of the canonical rows with one of these digests."""
    c = store.tables.fingerprint.c
    query = select(c.row_key).where(store.mine, c.copy_of.is_(None))
    keys: list[str] = []
    for some in batches(digests, _DIGESTS_A_QUERY):
        keys += connection.execute(query.where(c.digest.in_(some))).scalars().all()
    return keys


def _stored_digests(connection: Connection, store: FingerprintStore, wanted: Collection[bytes]) -> set[bytes]:
    digest = store.tables.fingerprint.c.digest
    found: set[bytes] = set()
    for some in batches(wanted, _DIGESTS_A_QUERY):
        found.update(
            map(bytes, connection.execute(select(digest).where(store.mine, digest.in_(some))).scalars())
        )
    return found


def _has_rejected(connection: Connection, tables: Tables, table_id: int) -> bool:
    c = tables.verdict.c
    # Not by EXISTS: a check that blocks makes each SELECT a locking read, and MySQL would not lock there.
    some = select(c.table_id).where(c.table_id == table_id, c.is_duplicate.is_(False)).limit(1)
    return connection.execute(some).first() is not None


def _is_of(tables: Tables, table_id: int, digests: DigestPair) -> ColumnElement[bool]:
    c = tables.verdict.c
    return and_(c.table_id == table_id, c.digest_a == digests[0], c.digest_b == digests[1])
