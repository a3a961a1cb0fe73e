"""In which group each row is, and by which kind of pair."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from db_dedup.dialects.batches import batches
from db_dedup.records.kinds import KINDS, Kind
from db_dedup.store.fingerprints import FingerprintStore

_KEYS_A_QUERY = 500


class Membership(NamedTuple):
    """A row's place in its group.

    Attributes:
        group_id: row key of the representative.
        size: rows of the group.
        order_value: by which rows of a group are sorted.
        kind: the first of `KINDS` that one of its pairs has; None of the representative, and where no kinds
            are known.
    """

    row_key: str
    group_id: str
    size: int
    order_value: str | None
    kind: Kind | None

    @property
    def is_representative(self) -> bool:
        """Whether the row represents its group."""
        return self.row_key == self.group_id


def find_memberships(
    connection: Connection, store: FingerprintStore, row_keys: Iterable[str]
) -> dict[str, Membership]:
    """Return row key -> its place in a group; rows in no group are left out."""
    found: dict[str, Membership] = {}
    for keys in batches(row_keys, _KEYS_A_QUERY):
        found |= _find(connection, store, keys)
    return found


def _find(connection: Connection, store: FingerprintStore, row_keys: Sequence[str]) -> dict[str, Membership]:
    row = store.tables.fingerprint
    first = row.alias("first")
    query = (
        select(row.c.id, row.c.row_key, row.c.copy_of, row.c.order_value, first.c.row_key, first.c.group_size)
        .join(first, first.c.id == row.c.group_id)
        .where(store.mine, row.c.row_key.in_(row_keys), first.c.group_size > 0)
    )
    rows = connection.execute(query).all()
    kinds = _kinds(connection, store, [row.id for row in rows if row.copy_of is None])
    return {
        key: Membership(
            key,
            group,
            int(size),
            order_value,
            None if key == group else "copy" if copy_of is not None else kinds.get(row_id),
        )
        for row_id, key, copy_of, order_value, group, size in rows
    }


def _kinds(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> dict[int, Kind]:
    """Return id -> the first of `KINDS` among the pairs of each row, without rows of unknown kinds."""
    pair = store.tables.pair
    numbers: dict[int, int] = {}
    for side in (pair.c.id_a, pair.c.id_b):
        query = select(side, func.min(pair.c.kind)).where(side.in_(ids)).group_by(side)
        for row_id, number in connection.execute(query) if ids else ():
            if number is not None:
                numbers[row_id] = min(int(number), numbers.get(row_id, len(KINDS)))
    return {row_id: KINDS[number] for row_id, number in numbers.items()}
