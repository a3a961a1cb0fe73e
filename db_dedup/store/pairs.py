"""The pair table during a scan: only differences are written, so `found_at` stays true."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, select

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.schema.tables import Tables
from db_dedup.store.fingerprints import FingerprintStore

_IDS_A_QUERY = 1000
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

    @classmethod
    def of(cls, found: Mapping[tuple[int, int], tuple[int, float | None]]) -> "StoredPairs":
        """From (id_a, id_b) -> (distance, similarity or None)."""
        return cls(
            np.array([a for a, _ in found], np.int64),
            np.array([b for _, b in found], np.int64),
            np.array([distance for distance, _ in found.values()], np.int16),
            np.array([score for _, score in found.values()], np.float64),
        )

    def only(self, is_kept: NDArray[np.bool_]) -> "StoredPairs":
        """Some of them."""
        return StoredPairs(
            self.id_a[is_kept], self.id_b[is_kept], self.distances[is_kept], self.similarities[is_kept]
        )


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
    found: set[tuple[Any, ...]] = set()
    for some in batches(ids, _IDS_A_QUERY):
        for by_one in by_either:
            found.update(map(tuple, connection.execute(by_one, {"ids": some}).all()))
    return _as_arrays(sorted(found, key=lambda row: (row[0], row[1])))


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
) -> tuple[int, int]:
    """Make the stored pairs the new ones; a pair that is in both keeps its row and its `found_at`.

    Returns:
        (how many were written, how many taken away); one that changed counts in both.
    """
    old_in_new = np.isin(_as_records(old), _as_records(new))
    new_in_old = np.isin(_as_records(new), _as_records(old))
    _delete_pairs(connection, store.tables, old.id_a[~old_in_new], old.id_b[~old_in_new])
    _insert_pairs(connection, store.dialect, store.tables, new, np.flatnonzero(~new_in_old), now)
    return int(np.count_nonzero(~new_in_old)), int(np.count_nonzero(~old_in_new))


def _as_records(pairs: StoredPairs) -> NDArray[np.void]:
    """Each pair as one comparable value, similarity included: a changed pair is replaced."""
    kind = np.dtype([("a", np.int64), ("b", np.int64), ("d", np.int16), ("s", np.float64)])
    records = np.empty(pairs.id_a.size, kind)
    records["a"], records["b"], records["d"] = pairs.id_a, pairs.id_b, pairs.distances
    # NaN equals nothing, not even itself
    records["s"] = np.nan_to_num(pairs.similarities, nan=-1.0)
    return records


def _delete_pairs(
    connection: Connection, tables: Tables, id_a: NDArray[np.int64], id_b: NDArray[np.int64]
) -> None:
    pair = tables.pair
    by_ids = delete(pair).where(pair.c.id_a == bindparam("a"), pair.c.id_b == bindparam("b"))
    for some in batches(zip(id_a.tolist(), id_b.tolist(), strict=True), _PAIRS_A_CALL):
        connection.execute(by_ids, [{"a": a, "b": b} for a, b in some])


def _insert_pairs(
    connection: Connection,
    dialect: Dialect,
    tables: Tables,
    pairs: StoredPairs,
    chosen: NDArray[np.int64],
    now: datetime,
) -> None:
    similarities = [None if np.isnan(s) else s for s in pairs.similarities[chosen].tolist()]
    rows = zip(
        pairs.id_a[chosen].tolist(),
        pairs.id_b[chosen].tolist(),
        pairs.distances[chosen].tolist(),
        similarities,
        [now] * chosen.size,
        strict=True,
    )
    dialect.bulk_insert(connection, tables.pair, ("id_a", "id_b", "distance", "similarity", "found_at"), rows)
