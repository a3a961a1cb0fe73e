"""The one-row look-up: which stored fingerprints are near, which rows are copies. From the indexes alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Connection,
    bindparam,
    or_,
    select,
    type_coerce,
    union_all,
)

from db_dedup.schema.types import to_signed, to_unsigned
from db_dedup.store.fingerprints import FingerprintStore

_IDS_A_QUERY = 1000


@dataclass(frozen=True)
class StoredRow:
    """A stored row, and where it stands in the answer.

    Attributes:
        class_id: id of the row that it is a copy of, its own where it is none.
        group_key: row key of its group's representative.
    """

    id: int
    class_id: int
    row_key: str
    digest: bytes
    group_key: str | None


def find_near(
    connection: Connection,
    store: FingerprintStore,
    block_values: Sequence[Sequence[int]],
    fingerprint: int,
    radius: int,
) -> dict[int, int]:
    """id -> distance in bits of every row within the radius that is no copy.

    Args:
        connection: leads to our tables.
        store: whose rows.
        block_values: for each of the four blocks the values to look up.
        fingerprint: unsigned 64 bits.
        radius: bits.
    """
    signed = to_signed(fingerprint)
    blocks = tuple(i for i, values in enumerate(block_values, 1) if values)
    parameters: dict[str, Any] = {f"values_{i}": block_values[i - 1] for i in blocks}
    parameters |= {"fingerprint": signed, "radius": radius}
    near = {}
    for row_id, stored in connection.execute(_near_query(store, blocks), parameters):
        distance = to_unsigned(stored ^ signed).bit_count()
        if distance <= radius:
            near[row_id] = distance
    return near


@lru_cache(maxsize=64)
def _near_query(store: FingerprintStore, blocks: tuple[int, ...]) -> CompoundSelect[Any]:
    """Query for (id, signed fingerprint) of every row that shares a block value, once for each it shares.

    Kept, since building it takes longer than the look-up. Where the database cannot count bits, nothing is
    asked about the radius.
    """
    table = store.tables.fingerprint
    stored = type_coerce(table.c.fingerprint, BigInteger)
    hamming = store.dialect.hamming(stored, bindparam("fingerprint", type_=BigInteger))
    queries = []
    for i in blocks:
        has_value = store.dialect.is_one_of(table.c[f"block_{i}"], f"values_{i}")
        query = store.dialect.in_one_process(select(table.c.id, stored).where(has_value, store.mine))
        queries.append(query if hamming is None else query.where(hamming <= bindparam("radius")))
    return union_all(*queries)


def find_by_digest(connection: Connection, store: FingerprintStore, digest: bytes) -> list[int]:
    """ids of the rows with this digest that are no copies."""
    table = store.tables.fingerprint
    query = select(table.c.id).where(table.c.digest == digest, store.mine, table.c.copy_of.is_(None))
    return list(connection.execute(query).scalars())


def read_classes(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[StoredRow]:
    """The rows of these ids and all copies of them."""
    row, first = store.tables.fingerprint, store.tables.fingerprint.alias("first")
    stored = []
    for start in range(0, len(ids), _IDS_A_QUERY):
        wanted = ids[start : start + _IDS_A_QUERY]
        query = (
            select(row.c.id, row.c.copy_of, row.c.row_key, row.c.digest, first.c.row_key)
            .outerjoin(first, first.c.id == row.c.group_id)
            .where(or_(row.c.id.in_(wanted), row.c.copy_of.in_(wanted)))
        )
        stored += [
            StoredRow(i, i if copy_of is None else copy_of, key, bytes(digest), group)
            for i, copy_of, key, digest, group in connection.execute(query)
        ]
    return stored
