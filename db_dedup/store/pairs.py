"""The pair table during a scan: only differences are written, so `found_at` stays true."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, func, select

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader

# Each row may be in as many pairs as an unabridged group has members.
_IDS_A_PAIR_QUERY = 200
_PAIRS_A_CALL = 10_000


@dataclass(frozen=True)
class StoredPairs:
    """p pairs by fingerprint id; similarity is NaN where it was not computed.

    Attributes:
        id_a: int64[p].
        id_b: int64[p].
        distances: int16[p], bits.
        similarities: float64[p].
    """

    id_a: NDArray[np.int64]
    id_b: NDArray[np.int64]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many they are."""
        return self.id_a.size

    def only(self, is_kept: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "StoredPairs":
        """Some of them, by a mask or by their positions."""
        return StoredPairs(
            self.id_a[is_kept], self.id_b[is_kept], self.distances[is_kept], self.similarities[is_kept]
        )


def concatenate_pairs(parts: Sequence[StoredPairs]) -> StoredPairs:
    """The pairs of all parts."""
    return StoredPairs(
        np.concatenate([np.empty(0, np.int64), *(part.id_a for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.id_b for part in parts)]),
        np.concatenate([np.empty(0, np.int16), *(part.distances for part in parts)]),
        np.concatenate([np.empty(0, np.float64), *(part.similarities for part in parts)]),
    )


NO_PAIRS: Final = concatenate_pairs(())


def read_pairs(connection: Connection, store: FingerprintStore) -> StoredPairs:
    """All stored pairs of a table under a recipe."""
    pair, fingerprint = store.tables.pair, store.tables.fingerprint
    query = (
        select(pair.c.id_a, pair.c.id_b, pair.c.distance, pair.c.similarity)
        .join(fingerprint, fingerprint.c.id == pair.c.id_a)
        .where(store.mine)
    )
    return _as_arrays(connection.execute(query).all())


def read_pairs_of(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> StoredPairs:
    """Every stored pair that one of these rows takes part in, once."""
    pair = store.tables.pair
    query = select(pair.c.id_a, pair.c.id_b, pair.c.distance, pair.c.similarity)
    by_either = [query.where(store.dialect.is_one_of(column, "ids")) for column in (pair.c.id_a, pair.c.id_b)]
    parts = [
        _as_arrays(connection.execute(by_one, {"ids": some}).all())
        for some in batches(ids, _IDS_A_PAIR_QUERY)
        for by_one in by_either
    ]
    found = concatenate_pairs(parts)
    order = np.lexsort((found.id_b, found.id_a))
    is_new = np.ones(order.size, np.bool_)
    is_new[1:] = np.diff(found.id_a[order]).astype(np.bool_) | np.diff(found.id_b[order]).astype(np.bool_)
    return found.only(order[is_new])


def _as_arrays(rows: Sequence[Sequence[Any]]) -> StoredPairs:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return StoredPairs(
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.int16),
        np.array(columns[3], np.float64),
    )


def replace_pairs(
    connection: Connection, store: FingerprintStore, old: StoredPairs, new: StoredPairs, now: datetime
) -> None:
    """Make the stored pairs the new ones; a pair that is in both keeps its row and its `found_at`."""
    lost, gained = differing_pairs(old, new)
    delete_pairs(connection, store, lost)
    insert_pairs(connection, store, gained, now)


def differing_pairs(old: StoredPairs, new: StoredPairs) -> tuple[StoredPairs, StoredPairs]:
    """(old pairs that are not among the new ones, new pairs that are not among the old ones); one that
    changed is in both."""
    old_records, new_records = _as_records(old), _as_records(new)
    is_lost, is_gained = ~np.isin(old_records, new_records), ~np.isin(new_records, old_records)
    return old.only(is_lost), new.only(is_gained)


def count_pairs_by_row(reader: Reader, store: FingerprintStore) -> list[tuple[int, int]]:
    """(id, how many pairs have it as their first row) of every row that is the first of some."""
    pair, row = store.tables.pair, store.tables.fingerprint
    query = (
        select(pair.c.id_a, func.count())
        .join(row, row.c.id == pair.c.id_a)
        .where(store.mine)
        .group_by(pair.c.id_a)
    )
    return [(int(row_id), int(count)) for row_id, count in reader.rows(query, pair.c.id_a)]


def delete_pairs_of(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Take away all pairs whose first row is one of these."""
    store.dialect.bulk_delete(connection, store.tables.pair, "id_a", ids)


def _as_records(pairs: StoredPairs) -> NDArray[np.void]:
    """Each pair as one comparable value, similarity included: a changed pair is replaced."""
    kind = np.dtype([("a", np.int64), ("b", np.int64), ("d", np.int16), ("s", np.float64)])
    records = np.empty(pairs.id_a.size, kind)
    records["a"], records["b"], records["d"] = pairs.id_a, pairs.id_b, pairs.distances
    # NaN equals nothing, not even itself
    records["s"] = np.nan_to_num(pairs.similarities, nan=-1.0)
    return records


def delete_pairs(connection: Connection, store: FingerprintStore, pairs: StoredPairs) -> None:
    """Take pairs away."""
    pair = store.tables.pair
    by_ids = delete(pair).where(pair.c.id_a == bindparam("a"), pair.c.id_b == bindparam("b"))
    for some in batches(zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True), _PAIRS_A_CALL):
        connection.execute(by_ids, [{"a": a, "b": b} for a, b in some])


def insert_pairs(connection: Connection, store: FingerprintStore, pairs: StoredPairs, now: datetime) -> None:
    """Write pairs that are not stored."""
    rows = zip(
        pairs.id_a.tolist(),
        pairs.id_b.tolist(),
        pairs.distances.tolist(),
        [None if np.isnan(score) else score for score in pairs.similarities.tolist()],
        [now] * pairs.count,
        strict=True,
    )
    columns = ("id_a", "id_b", "distance", "similarity", "found_at")
    store.dialect.bulk_insert(connection, store.tables.pair, columns, rows)
