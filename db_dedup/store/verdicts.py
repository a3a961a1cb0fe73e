"""What people said of two texts: a duplicate or not. Kept by digest, so that either text's change ends it."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from db_dedup.dialects.batches import batches
from db_dedup.schema.tables import Tables
from db_dedup.store.fingerprints import FingerprintStore

DigestPair = tuple[bytes, bytes]
"""Digests of two texts, the smaller first."""

_DIGESTS_A_QUERY = 1000


class StoredVerdict(NamedTuple):
    """One verdict; the keys are those of the rows that were judged, each under the digest of its letter."""

    digest_a: bytes
    digest_b: bytes
    key_a: str
    key_b: str
    is_duplicate: bool
    decided_at: datetime

    @property
    def digests(self) -> DigestPair:
        """What it is kept by."""
        return self.digest_a, self.digest_b


def digest_pair(one: bytes, other: bytes) -> DigestPair:
    """Two digests as verdicts are kept by them."""
    return (one, other) if one < other else (other, one)


def sorted_verdict(
    one: tuple[bytes, str], other: tuple[bytes, str], is_duplicate: bool, decided_at: datetime
) -> StoredVerdict:
    """A verdict on two rows, given as (digest, row key) in any order."""
    (digest_a, key_a), (digest_b, key_b) = sorted((one, other))
    return StoredVerdict(digest_a, digest_b, key_a, key_b, is_duplicate, decided_at)


def read_verdicts(connection: Connection, tables: Tables, table_id: int) -> list[StoredVerdict]:
    """All verdicts of a table, the oldest first, also those that a changed text has ended."""
    c = tables.verdict.c
    query = (
        select(c.digest_a, c.digest_b, c.key_a, c.key_b, c.is_duplicate, c.decided_at)
        .where(c.table_id == table_id)
        .order_by(c.decided_at, c.digest_a, c.digest_b)
    )
    return [
        StoredVerdict(bytes(row.digest_a), bytes(row.digest_b), *row[2:]) for row in connection.execute(query)
    ]


def standing_verdicts(connection: Connection, store: FingerprintStore) -> list[StoredVerdict]:
    """The verdicts that hold: both texts are among the stored rows."""
    found = read_verdicts(connection, store.tables, store.table_id)
    wanted = {digest for verdict in found for digest in verdict.digests}
    there = _stored_digests(connection, store, wanted)
    return [verdict for verdict in found if there.issuperset(verdict.digests)]


def read_rejected(connection: Connection, tables: Tables, name: str) -> set[DigestPair]:
    """The pairs of texts of a watched table that are no duplicates, whatever the rule says."""
    verdict, watched = tables.verdict, tables.watched_table
    query = (
        select(verdict.c.digest_a, verdict.c.digest_b)
        .join(watched, watched.c.id == verdict.c.table_id)
        .where(watched.c.name == name, verdict.c.is_duplicate.is_(False))
    )
    return {(bytes(a), bytes(b)) for a, b in connection.execute(query)}


def rejected_among(
    connection: Connection, tables: Tables, table_id: int, digests: Collection[bytes]
) -> set[DigestPair]:
    """As `read_rejected`, where both texts are among these."""
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


def put_verdict(connection: Connection, tables: Tables, table_id: int, verdict: StoredVerdict) -> None:
    """Keep a verdict, in place of an earlier one on the same two texts."""
    values = verdict._asdict()
    new = insert(tables.verdict).values(table_id=table_id, **values)
    again = update(tables.verdict).where(_is_of(tables, table_id, verdict.digests)).values(values)
    if connection.execute(again).rowcount:
        return
    # Of two people who judge the same pair at once the later one is believed.
    with suppress(IntegrityError), connection.begin_nested():
        connection.execute(new)
        return
    connection.execute(again)


def drop_verdicts(
    connection: Connection, tables: Tables, table_id: int, digests: Iterable[DigestPair]
) -> int:
    """Forget verdicts. Gives how many there were."""
    statements = (delete(tables.verdict).where(_is_of(tables, table_id, pair)) for pair in digests)
    return sum(connection.execute(statement).rowcount for statement in statements)


def head_keys(connection: Connection, store: FingerprintStore, digests: Collection[bytes]) -> list[str]:
    """Row keys of the stored rows with one of these digests that are no copies."""
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
    some = exists().where(c.table_id == table_id, c.is_duplicate.is_(False))
    return bool(connection.execute(select(some)).scalar_one())


def _is_of(tables: Tables, table_id: int, digests: DigestPair) -> ColumnElement[bool]:
    c = tables.verdict.c
    return and_(c.table_id == table_id, c.digest_a == digests[0], c.digest_b == digests[1])
