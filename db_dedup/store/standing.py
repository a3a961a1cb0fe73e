"""Where single rows stand in the stored answer, and what links two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, func, or_, select

from db_dedup.store.fingerprints import FingerprintStore


@dataclass(frozen=True)
class StandingRow:
    """A stored row.

    Attributes:
        class_id: id of the row that it is a copy of, its own where it is none.
        copy_of: row key of the row that it is a copy of.
        group_key: row key of its group's representative.
        is_abridged: its group keeps only the pairs that connect it.
        found_at: when it was found to be a copy.
    """

    row_key: str
    class_id: int
    digest: bytes
    copy_of: str | None
    group_key: str | None
    is_abridged: bool
    found_at: datetime | None


def find_standing(
    connection: Connection, store: FingerprintStore, row_keys: Sequence[str]
) -> dict[str, StandingRow]:
    """row key -> what is stored of it, for the keys that are there."""
    row = store.tables.fingerprint
    original, first = row.alias("original"), row.alias("first")
    query = (
        select(
            row.c.row_key,
            func.coalesce(row.c.copy_of, row.c.id),
            row.c.digest,
            original.c.row_key,
            first.c.row_key,
            first.c.is_abridged,
            row.c.found_at,
        )
        .outerjoin(original, original.c.id == row.c.copy_of)
        .outerjoin(first, first.c.id == row.c.group_id)
        .where(store.mine, row.c.row_key.in_(row_keys))
    )
    return {
        key: StandingRow(key, class_id, bytes(digest), copy_of, group, bool(is_abridged), found_at)
        for key, class_id, digest, copy_of, group, is_abridged, found_at in connection.execute(query)
    }


def find_pair(
    connection: Connection, store: FingerprintStore, id_a: int, id_b: int
) -> tuple[int, float | None, datetime] | None:
    """(distance, similarity, when it was found) of the stored pair of two rows, in either order."""
    pair = store.tables.pair
    query = select(pair.c.distance, pair.c.similarity, pair.c.found_at).where(
        or_(
            and_(pair.c.id_a == id_a, pair.c.id_b == id_b),
            and_(pair.c.id_a == id_b, pair.c.id_b == id_a),
        )
    )
    row = connection.execute(query).first()
    return None if row is None else (int(row[0]), row[1], row[2])
