"""Where single rows stand in the stored answer, and what links two of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Select, and_, func, literal, or_, select

from db_dedup.dialects.batches import batches
from db_dedup.records import NearestRow
from db_dedup.store.fingerprints import FingerprintStore

_KEYS_A_QUERY: Final = 500


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


def find_nearest(
    connection: Connection, store: FingerprintStore, row_keys: Sequence[str]
) -> dict[str, NearestRow]:
    """Row key -> the row that it resembles most by the stored pairs; of equal ones the representative.

    A copy resembles the row that it is a copy of. A row without a pair is missing.
    """
    found: dict[str, tuple[tuple[Any, ...], NearestRow]] = {}
    for some in batches(row_keys, _KEYS_A_QUERY):
        for query in _neighbours(store, some):
            for key, other, distance, similarity, is_representative in connection.execute(query):
                rank = (-(similarity or 0), distance, not is_representative, other)
                if key not in found or rank < found[key][0]:
                    found[key] = rank, NearestRow(other, int(distance), similarity)
    return {key: nearest for key, (_, nearest) in found.items()}


def _neighbours(store: FingerprintStore, row_keys: Sequence[str]) -> list[Select[Any]]:
    """Queries for (row key, another's, distance, similarity, whether the other is the representative)."""
    row, pair = store.tables.fingerprint, store.tables.pair
    other = row.alias("other")
    is_asked = and_(store.mine, row.c.row_key.in_(row_keys))
    leads = (other.c.id == row.c.group_id).label("is_representative")
    pairs = select(row.c.row_key, other.c.row_key, pair.c.distance, pair.c.similarity, leads).where(is_asked)
    links = select(row.c.row_key, other.c.row_key, literal(0), literal(1.0), leads).where(is_asked)
    a, b = (
        row.join(pair, mine == row.c.id).join(other, other.c.id == theirs)
        for mine, theirs in ((pair.c.id_a, pair.c.id_b), (pair.c.id_b, pair.c.id_a))
    )
    originals = row.join(other, other.c.id == row.c.copy_of)
    return [pairs.select_from(a), pairs.select_from(b), links.select_from(originals)]
