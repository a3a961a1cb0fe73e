"""When pairs and links of exact duplicates were found, carried over from one recipe to the next.

If two recipes differ only in their frames, the settings are the same. A pair that both find then keeps the
time at which the first one found it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader

_IDS_A_QUERY: Final = 1_000
_RANK_BITS: Final = np.uint64(32)


@dataclass(frozen=True)
class FoundTimes:
    """When pairs of rows were found, by the ids of their rows under a new recipe.

    Attributes:
        ids: int64[n], ascending: all rows of the new recipe.
        keys: uint64[p], ascending: the ranks of both rows of a pair among the ids.
        times: datetime64[p], UTC.
    """

    ids: NDArray[np.int64]
    keys: NDArray[np.uint64]
    times: NDArray[np.datetime64]

    def of(self, id_a: NDArray[np.int64], id_b: NDArray[np.int64], now: datetime) -> list[datetime]:
        """Return for each pair when it was found; `now` for a pair that was not found before."""
        result = np.full(id_a.size, np.datetime64(now, "us"))
        if self.keys.size and id_a.size:
            keys = _keys(self.ids, id_a, id_b)
            places = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
            was_found = self.keys[places] == keys
            result[was_found] = self.times[places[was_found]]
        times: list[datetime] = result.tolist()
        return times

    @classmethod
    def carried_over(
        cls, reader: Reader, former: FingerprintStore | None, store: FingerprintStore, row_keys: Sequence[str]
    ) -> Self | None:
        """Return what `read` returns, for the rows of `store`; None if there is no former recipe."""
        if former is None:
            return None
        id_of = store.read_ids(reader)
        return cls.read(reader, former, row_keys, np.array([id_of[key] for key in row_keys], np.int64))

    @classmethod
    def read(
        cls, reader: Reader, former: FingerprintStore, row_keys: Sequence[str], ids: NDArray[np.int64]
    ) -> Self:
        """Return when pairs and links were found under a former recipe.

        Args:
            reader: of our tables.
            former: the table and the former recipe.
            row_keys: of the n rows of the new recipe.
            ids: int64[n], their ids.
        """
        new_of = dict(zip(row_keys, ids.tolist(), strict=True))
        new_id = {old: new_of[key] for key, old in former.read_ids(reader).items() if key in new_of}
        found = [_moved(rows, new_id) for rows in _read(reader, former, sorted(new_id))]
        id_a = np.concatenate([np.empty(0, np.int64), *(part[0] for part in found)])
        id_b = np.concatenate([np.empty(0, np.int64), *(part[1] for part in found)])
        times = np.concatenate([np.empty(0, "datetime64[us]"), *(part[2] for part in found)])
        own = np.sort(ids)
        keys = _keys(own, id_a, id_b)
        order = np.argsort(keys)
        return cls(own, keys[order], times[order])


def nothing_found() -> FoundTimes:
    """Return the times of no pairs: every pair is new."""
    return FoundTimes(np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, "datetime64[us]"))


def _keys(ids: NDArray[np.int64], id_a: NDArray[np.int64], id_b: NDArray[np.int64]) -> NDArray[np.uint64]:
    ranks = [np.searchsorted(ids, side).astype(np.uint64) for side in (id_a, id_b)]
    keys: NDArray[np.uint64] = (np.minimum(*ranks) << _RANK_BITS) | np.maximum(*ranks)
    return keys


def _moved(
    rows: Sequence[Sequence[Any]], new_id: Mapping[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.datetime64]]:
    kept = [(new_id[a], new_id[b], at) for a, b, at in rows if a in new_id and b in new_id and at is not None]
    columns = list(zip(*kept, strict=True)) or [(), (), ()]
    return (
        np.array(columns[0], np.int64),
        np.array(columns[1], np.int64),
        np.array(columns[2], "datetime64[us]"),
    )


def _read(reader: Reader, former: FingerprintStore, ids: Sequence[int]) -> Iterable[list[Any]]:
    """Yield (id, id, time) of pairs and links whose first row is one of these, some at a time."""
    pair, row = former.tables.pair, former.tables.fingerprint
    is_one_of = former.dialect.is_one_of
    pairs = select(pair.c.id_a, pair.c.id_b, pair.c.found_at).where(is_one_of(pair.c.id_a, "ids"))
    links = select(row.c.id, row.c.copy_of, row.c.found_at).where(
        is_one_of(row.c.id, "ids"), row.c.copy_of.is_not(None)
    )
    for some in batches(ids, _IDS_A_QUERY):
        with reader.open() as connection:
            for query in (pairs, links):
                yield [tuple(found) for found in connection.execute(query, {"ids": some})]
