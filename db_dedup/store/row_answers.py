"""What the stored answer says of single rows: their groups, their pairs, and what they duplicate exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Select, and_, func, literal, or_, select

from db_dedup.dialects.batches import batches
from db_dedup.records import NearestRow, StoredLink
from db_dedup.records.kinds import KINDS
from db_dedup.store.fingerprints import FingerprintStore

_KEYS_A_QUERY: Final = 500


@dataclass(frozen=True)
class RowAnswer:
    """What the stored answer says of one row.

    Attributes:
        class_id: id of its canonical row, its own where it is one itself.
        copy_of: row key of the canonical row that it is an exact duplicate of; None where it is one itself.
        group_key: row key of its group's representative.
        is_abridged: its group keeps only the pairs that connect it.
        found_at: when it was found to be an exact duplicate.
    """

    row_key: str
    class_id: int
    digest: bytes
    copy_of: str | None
    group_key: str | None
    is_abridged: bool
    found_at: datetime | None


def find_row_answers(
    connection: Connection, store: FingerprintStore, row_keys: Sequence[str]
) -> dict[str, RowAnswer]:
    """Return row key -> what the answer says of it, for the keys that are stored."""
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
        key: RowAnswer(key, class_id, bytes(digest), copy_of, group, bool(is_abridged), found_at)
        for key, class_id, digest, copy_of, group, is_abridged, found_at in connection.execute(query)
    }


def find_pair(
    connection: Connection, store: FingerprintStore, one: RowAnswer, other: RowAnswer
) -> StoredLink | None:
    """Return the stored pair of two rows, or of their canonical rows, named in any order."""
    pair, id_a, id_b = store.tables.pair, one.class_id, other.class_id
    query = select(
        pair.c.distance,
        pair.c.similarity,
        pair.c.found_at,
        pair.c.kind,
        pair.c.contained_id,
        pair.c.other_place,
    ).where(
        or_(
            and_(pair.c.id_a == id_a, pair.c.id_b == id_b),
            and_(pair.c.id_a == id_b, pair.c.id_b == id_a),
        )
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    return StoredLink(
        "pair",
        int(row.distance),
        row.similarity,
        row.found_at,
        None if row.kind is None else KINDS[row.kind],
        {id_a: one.row_key, id_b: other.row_key}.get(row.contained_id),
        None if row.other_place is None else bool(row.other_place),
    )


def find_nearest(
    connection: Connection, store: FingerprintStore, row_keys: Sequence[str]
) -> dict[str, NearestRow]:
    """Return row key -> the most similar row by the stored pairs; of equally similar ones the representative.

    Of an exact duplicate it is the canonical row. A row without a pair is left out.
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
