"""The pair table. Only differences are written, so that a pair that stays keeps its `found_at`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, Table, func, select

from db_dedup.dialects.batches import batches
from db_dedup.records.kinds import CONTAINED, KIND_BITS, OTHER_PLACE, SECOND_IS_PART, UNKNOWN
from db_dedup.records.pages import take_lists
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.number_rows import number_rows, stream_number_rows
from db_dedup.store.reader import Reader

# Each row may be in as many pairs as an unabridged group has members.
_IDS_A_PAIR_QUERY = 200
_SIDES: Final = ("id_a", "id_b")
_PAIRS_A_PART = 100_000
"""As rows of a result they take many times the memory of arrays."""


@dataclass(frozen=True)
class StoredPairs:
    """p pairs by fingerprint id; similarity is NaN where it was not computed.

    In the database the kind is a number, and the row that is part of the other is named by its id.

    Attributes:
        id_a: int64[p].
        id_b: int64[p].
        distances: int16[p], bits.
        similarities: float64[p].
        kinds: uint8[p], packed as in `records.kinds`: a is the first row.
    """

    id_a: NDArray[np.int64]
    id_b: NDArray[np.int64]
    distances: NDArray[np.int16]
    similarities: NDArray[np.float64]
    kinds: NDArray[np.uint8]

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return self.id_a.size

    def only(self, is_kept: NDArray[np.bool_] | NDArray[np.int64] | slice) -> "StoredPairs":
        """Return some of them, by a mask or by their positions."""
        return StoredPairs(
            self.id_a[is_kept],
            self.id_b[is_kept],
            self.distances[is_kept],
            self.similarities[is_kept],
            self.kinds[is_kept],
        )


def concatenate_pairs(parts: Sequence[StoredPairs]) -> StoredPairs:
    """Return the pairs of all parts."""
    return StoredPairs(
        np.concatenate([np.empty(0, np.int64), *(part.id_a for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *(part.id_b for part in parts)]),
        np.concatenate([np.empty(0, np.int16), *(part.distances for part in parts)]),
        np.concatenate([np.empty(0, np.float64), *(part.similarities for part in parts)]),
        np.concatenate([np.empty(0, np.uint8), *(part.kinds for part in parts)]),
    )


NO_PAIRS: Final = concatenate_pairs(())


def read_pairs(connection: Connection, store: FingerprintStore) -> StoredPairs:
    """Return all stored pairs of a table under a recipe."""
    return concatenate_pairs([*pairs_in_parts(connection, store, _PAIRS_A_PART)])


def pairs_in_parts(
    connection: Connection, store: FingerprintStore, count: int, without: Sequence[int] = ()
) -> Iterator[StoredPairs]:
    """Yield all stored pairs of a table under a recipe in the order of their ids, so many at a time.

    Args:
        connection: to read through. No other statement may run on it before the last part.
        store: the table and recipe.
        count: how many pairs at a time.
        without: groups whose pairs are left out.
    """
    pair, row = store.tables.pair, store.tables.fingerprint
    query = _select(pair).join(row, row.c.id == pair.c.id_a).where(store.mine)
    if without:
        query = query.where(row.c.group_id.not_in(without))
    rows = stream_number_rows(connection, store.dialect, query, pair.c.id_a, count, is_ordered=True)
    return map(_as_arrays, take_lists(rows, lambda: count))


def read_pairs_of(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> StoredPairs:
    """Return every stored pair that has one of these rows, once."""
    return distinct_pairs(concatenate_pairs([_read_by(connection, store, ids, side) for side in _SIDES]))


def read_pairs_within(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> StoredPairs:
    """Return every stored pair of some rows that are whole groups, so that both rows of a pair are here."""
    return _read_by(connection, store, ids, _SIDES[0])


def _read_by(connection: Connection, store: FingerprintStore, ids: Sequence[int], side: str) -> StoredPairs:
    query, row_id = _query_of_rows(store, side), store.tables.pair.c[side]
    found = (
        number_rows(connection, store.dialect, query, row_id, {"ids": some})
        for some in batches(ids, _IDS_A_PAIR_QUERY)
    )
    return concatenate_pairs([_as_arrays([*rows]) for rows in found])


def distinct_pairs(pairs: StoredPairs) -> StoredPairs:
    """Return each pair once, in the order of their ids."""
    order = np.lexsort((pairs.id_b, pairs.id_a))
    is_new = np.ones(order.size, np.bool_)
    is_new[1:] = np.diff(pairs.id_a[order]).astype(np.bool_) | np.diff(pairs.id_b[order]).astype(np.bool_)
    return pairs.only(order[is_new])


def read_linked_ids(
    connection: Connection, store: FingerprintStore, group_id: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (int64[p] first rows, int64[p] second rows) of the stored pairs of a group."""
    pair, row = store.tables.pair, store.tables.fingerprint
    query = (
        select(pair.c.id_a, pair.c.id_b).join(row, row.c.id == pair.c.id_a).where(row.c.group_id == group_id)
    )
    # An array of result rows instead of columns takes twenty times as long.
    ids_a, ids_b = list(zip(*connection.execute(query), strict=True)) or ((), ())
    return np.array(ids_a, np.int64), np.array(ids_b, np.int64)


@lru_cache(maxsize=64)
def _query_of_rows(store: FingerprintStore, side: str) -> Select[Any]:
    """Build the query for the pairs whose row on this side is one of some rows.

    Cached: building it takes as long as the database needs for some pairs.
    """
    pair = store.tables.pair
    return _select(pair).where(store.dialect.is_one_of(pair.c[side], "ids"))


def _select(pair: Table) -> Select[Any]:
    return select(
        pair.c.id_a,
        pair.c.id_b,
        pair.c.distance,
        pair.c.similarity,
        pair.c.kind,
        pair.c.contained_id,
        pair.c.other_place,
    )


def _as_arrays(rows: Sequence[Sequence[Any]]) -> StoredPairs:
    """Return selected rows of the pair table."""
    ids_a, ids_b, distances, similarities, kinds, contained, other_places = (
        list(zip(*rows, strict=True)) or [()] * 7
    )
    id_b = np.array(ids_b, np.int64)
    return StoredPairs(
        np.array(ids_a, np.int64),
        id_b,
        np.array(distances, np.int16),
        np.array(similarities, np.float64),
        _packed(id_b, kinds, contained, other_places),
    )


def _packed(
    id_b: NDArray[np.int64],
    kinds: Sequence[int | None],
    contained: Sequence[int | None],
    other_places: Sequence[bool | None],
) -> NDArray[np.uint8]:
    """Return uint8[p]: the packed kinds of stored ones."""
    numbers = np.array([UNKNOWN if kind is None else kind + 1 for kind in kinds], np.uint8)
    second_is_part = np.array([0 if part is None else part for part in contained], np.int64) == id_b
    flags = SECOND_IS_PART * second_is_part + OTHER_PLACE * np.array(other_places, np.bool_)
    return np.where(numbers == UNKNOWN, UNKNOWN, numbers | flags).astype(np.uint8)


def _kind_columns(pairs: StoredPairs) -> tuple[list[int | None], list[int | None], list[bool | None]]:
    """Return (kinds, ids of contained rows, flags of other places) as they are stored."""
    kinds = (pairs.kinds & KIND_BITS).astype(object)
    contained = np.where(pairs.kinds & SECOND_IS_PART, pairs.id_b, pairs.id_a).astype(object)
    other_places = (pairs.kinds & OTHER_PLACE).astype(np.bool_).astype(object)
    is_unknown = pairs.kinds == UNKNOWN
    contained[(pairs.kinds & KIND_BITS) != CONTAINED] = None
    kinds -= 1
    kinds[is_unknown], other_places[is_unknown] = None, None
    return kinds.tolist(), contained.tolist(), other_places.tolist()


def replace_pairs(
    connection: Connection, store: FingerprintStore, old: StoredPairs, new: StoredPairs, now: datetime
) -> None:
    """Replace the old stored pairs by the new ones; a pair that is in both keeps its row and its
    `found_at`."""
    lost, gained = differing_pairs(old, new)
    delete_pairs(connection, store, lost)
    insert_pairs(connection, store, gained, [now] * gained.count)


def differing_pairs(old: StoredPairs, new: StoredPairs) -> tuple[StoredPairs, StoredPairs]:
    """Return (old pairs that are not among the new ones, new pairs that are not among the old ones).

    Each pair occurs once in the old ones, and once in the new ones. One whose distance, similarity or kind
    changed is in both results.
    """
    ids_a, ids_b = np.concatenate([old.id_a, new.id_a]), np.concatenate([old.id_b, new.id_b])
    order = np.lexsort((ids_b, ids_a))  # of two equal pairs the old one comes first
    is_followed = (np.diff(ids_a[order]) == 0) & (np.diff(ids_b[order]) == 0)
    before, after = order[:-1][is_followed], order[1:][is_followed] - old.count
    stays = (old.distances[before] == new.distances[after]) & (old.kinds[before] == new.kinds[after])
    similarities = old.similarities[before], new.similarities[after]
    stays &= (similarities[0] == similarities[1]) | np.isnan(similarities).all(axis=0)
    is_lost, is_gained = np.ones(old.count, np.bool_), np.ones(new.count, np.bool_)
    is_lost[before[stays]] = is_gained[after[stays]] = False
    return old.only(is_lost), new.only(is_gained)


def count_pairs_by_row(reader: Reader, store: FingerprintStore) -> list[tuple[int, int]]:
    """Return (id, how many pairs have it as their first row) of every row that is the first row of a pair."""
    pair, row = store.tables.pair, store.tables.fingerprint
    query = (
        select(pair.c.id_a, func.count())
        .join(row, row.c.id == pair.c.id_a)
        .where(store.mine)
        .group_by(pair.c.id_a)
    )
    return [(int(row_id), int(count)) for row_id, count in reader.rows(query, pair.c.id_a)]


def delete_pairs_of(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Delete all pairs whose first row is one of these."""
    store.dialect.bulk_delete(connection, store.tables.pair, "id_a", ids)


def delete_pairs(connection: Connection, store: FingerprintStore, pairs: StoredPairs) -> None:
    """Delete pairs."""
    keys = zip(pairs.id_a.tolist(), pairs.id_b.tolist(), strict=True)
    store.dialect.bulk_delete_keys(connection, store.tables.pair, ("id_a", "id_b"), keys)


def insert_pairs(
    connection: Connection, store: FingerprintStore, pairs: StoredPairs, found_at: Sequence[datetime]
) -> None:
    """Insert pairs that are not stored, each with the time when it was found."""
    similarities = pairs.similarities.astype(object)
    similarities[np.isnan(pairs.similarities)] = None
    columns = (pairs.id_a, pairs.id_b, pairs.distances, similarities)
    rows = zip(*(column.tolist() for column in columns), found_at, *_kind_columns(pairs), strict=True)
    names = ("id_a", "id_b", "distance", "similarity", "found_at", "kind", "contained_id", "other_place")
    store.dialect.bulk_insert(connection, store.tables.pair, names, rows)
