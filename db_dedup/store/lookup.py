"""Look-ups by index: which stored fingerprints are near, and which rows are exact duplicates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    not_,
    or_,
    select,
    type_coerce,
    union_all,
)

from db_dedup.dialects.batches import batches, number_batches
from db_dedup.schema.types import to_signed
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.sketches import set_generation

_IDS_A_QUERY = 1000
_ASKED_A_QUERY: Final = 32
_VALUES_A_QUERY: Final = 4000
_ROWS_A_COMPARISON: Final = 65_536


class Asked(NamedTuple):
    """A fingerprint whose neighbours are wanted.

    Attributes:
        fingerprint: unsigned 64 bits.
        block_values: for each of the four blocks the values to look up.
    """

    fingerprint: int
    block_values: Sequence[Sequence[int]]


class Near(NamedTuple):
    """p pairs of an asked fingerprint and a stored row, each once.

    Attributes:
        which: int64[p], positions of the asked fingerprints.
        ids: int64[p], of the rows.
        distances: int64[p], bits.
    """

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    distances: NDArray[np.int64]


@dataclass(frozen=True)
class StoredRow:
    """A stored row and its group.

    Attributes:
        class_id: id of its canonical row, its own where it is one itself.
        fingerprint: unsigned 64 bits; None for a row with too little text.
        form: the number of its form (`records.forms`).
        group_key: row key of its group's representative.
        set_generation: the number of the active generation if that has the set of the row's present features.
    """

    id: int
    class_id: int
    row_key: str
    digest: bytes
    fingerprint: int | None
    form: int | None
    group_key: str | None
    set_generation: int | None


def find_near(connection: Connection, store: FingerprintStore, asked: Sequence[Asked], radius: int) -> Near:
    """Find every canonical row within the radius of each asked fingerprint.

    Args:
        connection: leads to our tables.
        store: whose rows.
        asked: up to 32 of them are looked up by one statement.
        radius: bits.
    """
    found = [Near(*(np.empty(0, np.int64) for _ in range(3)))]
    for first, some in _statements(asked):
        ids, values = _sharing_a_block(connection, store, some, radius)
        fingerprints = np.array([one.fingerprint for one in some], np.uint64)
        for start in range(0, ids.size, _ROWS_A_COMPARISON):
            part = slice(start, start + _ROWS_A_COMPARISON)
            distances = np.bitwise_count(fingerprints[:, None] ^ values[None, part]).astype(np.int64)
            which, rows = np.nonzero(distances <= radius)
            found.append(Near(which + first, ids[part][rows], distances[which, rows]))
    return Near(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _statements(asked: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Asked]]]:
    """Yield (position of the first, the fingerprints that one statement looks up)."""
    if not asked:
        return
    size = max(1, *map(len, asked[0].block_values))
    count = max(1, min(_ASKED_A_QUERY, _VALUES_A_QUERY // size))
    for first in range(0, len(asked), count):
        yield first, asked[first : first + count]


def _sharing_a_block(
    connection: Connection, store: FingerprintStore, asked: Sequence[Asked], radius: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (int64[n] ids, uint64[n] fingerprints) of rows that share a block value with one, each row once.

    Where the database can count bits, only of those that are near one of them.
    """
    blocks = tuple(i for i, values in enumerate(asked[0].block_values, 1) if values)
    parameters: dict[str, Any] = {"radius": radius}
    for i in blocks:
        parameters[f"values_{i}"] = sorted({value for one in asked for value in one.block_values[i - 1]})
    # The database keeps two statements, for one fingerprint and for many: the last one fills up the others.
    count = 1 if len(asked) == 1 else _ASKED_A_QUERY
    for place in range(count):
        parameters[f"fingerprint_{place}"] = to_signed(asked[min(place, len(asked) - 1)].fingerprint)
    rows = connection.execute(_near_query(store, blocks, count), parameters).all()
    ids, places = np.unique(np.fromiter((row[0] for row in rows), np.int64, len(rows)), return_index=True)
    signed = np.fromiter((row[1] for row in rows), np.int64, len(rows))
    return ids, signed[places].view(np.uint64)


@lru_cache(maxsize=64)
def _near_query(store: FingerprintStore, blocks: tuple[int, ...], count: int) -> CompoundSelect[Any]:
    """Build a query for (id, signed fingerprint) of every row that shares a block value, once for each.

    Cached: building it takes longer than the look-up. Where the database cannot count bits, the query does
    not test the radius.
    """
    table = store.tables.fingerprint
    stored = type_coerce(table.c.fingerprint, BigInteger)
    distances = [
        store.dialect.hamming(stored, bindparam(f"fingerprint_{place}", type_=BigInteger))
        for place in range(count)
    ]
    is_near = [distance <= bindparam("radius") for distance in distances if distance is not None]
    queries = []
    for i in blocks:
        has_value = store.dialect.is_one_of(table.c[f"block_{i}"], f"values_{i}")
        query = store.dialect.in_one_process(select(table.c.id, stored).where(has_value, store.mine))
        queries.append(query.where(or_(*is_near)) if is_near else query)
    return union_all(*queries)


def read_classes(
    connection: Connection, store: FingerprintStore, ids: Sequence[int], digests: Sequence[bytes]
) -> list[StoredRow]:
    """Return the rows of these ids and of these digests, and all exact duplicates of them, each once.

    An id may be one of a row that is gone: in SQLite a row of another table or recipe may have it now. That
    is left out.
    """
    found: dict[int, StoredRow] = {}
    query: Select[Any] | CompoundSelect[Any]
    parts = number_batches(ids, _IDS_A_QUERY), batches(digests, _IDS_A_QUERY)
    for some in zip_longest(*parts, fillvalue=()):
        query, parameters = _equal_query(store), dict[str, Any](digests=some[1])
        if some[0]:
            query, parameters = _classes_query(store), parameters | {"ids": some[0], "read": some[1]}
        for table_id, recipe, i, copy_of, key, digest, *others in connection.execute(query, parameters):
            if (table_id, recipe) == (store.table_id, store.recipe):
                found[i] = StoredRow(i, i if copy_of is None else copy_of, key, bytes(digest), *others)
    return [*found.values()]


@lru_cache(maxsize=64)
def _classes_query(store: FingerprintStore) -> CompoundSelect[Any]:
    """Build a query for (table, recipe, what `StoredRow` tells) of rows; each part uses an index of its own.

    Where ids are asked for, the caller leaves out rows of other tables and recipes: for a condition on these
    and some hundred ids, MariaDB reads the whole table by the index of digests.

    A class may have thousands of rows, so those of one that is asked for by its digest are not read a second
    time. Cached: building it takes longer than the look-up.
    """
    c, is_one_of = store.tables.fingerprint.c, store.dialect.is_one_of
    # A parameter of its own: SQLAlchemy writes an empty list for IN and for NOT IN in one way.
    is_read = is_one_of(c.digest, "read")
    return union_all(
        _equal_query(store),
        _row_query(store).where(is_one_of(c.id, "ids"), not_(is_read)),
        _row_query(store).where(is_one_of(c.copy_of, "ids"), not_(is_read)),
    )


@lru_cache(maxsize=64)
def _equal_query(store: FingerprintStore) -> Select[Any]:
    """Build a query for the same, of rows by their digests alone: a third of the statement."""
    is_equal = store.dialect.is_one_of(store.tables.fingerprint.c.digest, "digests")
    return _row_query(store).where(store.mine, is_equal)


def _row_query(store: FingerprintStore) -> Select[Any]:
    row, first = store.tables.fingerprint, store.tables.fingerprint.alias("first")
    names = ("table_id", "recipe", "id", "copy_of", "row_key", "digest", "fingerprint", "form")
    of_row = (row.c[name] for name in names)
    query = select(*of_row, first.c.row_key.label("group_key"), set_generation(store))
    return query.outerjoin(first, first.c.id == row.c.group_id)
