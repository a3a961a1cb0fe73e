"""The stored rows around a change: the worker reads them, and rewrites only what differs."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Select, func, select

from db_dedup.dialects.batches import batches
from db_dedup.records.fingerprints import AnswerRow
from db_dedup.store.fingerprints import FingerprintStore

_IDS_A_QUERY = 1000


def rows_of_keys(connection: Connection, store: FingerprintStore, row_keys: Sequence[str]) -> list[AnswerRow]:
    """Return the rows of these keys."""
    return _rows(connection, store, "row_key", row_keys)


def rows_of_ids(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[AnswerRow]:
    """Return the rows of these ids."""
    return _rows(connection, store, "id", ids)


def rows_of_digests(
    connection: Connection, store: FingerprintStore, digests: Sequence[bytes]
) -> list[AnswerRow]:
    """Return every row with one of these digests, exact duplicates included."""
    return _rows(connection, store, "digest", digests)


def canonical_rows(
    connection: Connection, store: FingerprintStore, digests: Sequence[bytes]
) -> list[AnswerRow]:
    """Return the canonical row of each of these digests."""
    return _rows(connection, store, "digest", digests, canonical_only=True)


def exact_duplicates(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[AnswerRow]:
    """Return every exact duplicate of one of these canonical rows."""
    return _rows(connection, store, "copy_of", ids)


def one_exact_duplicate_each(
    connection: Connection, store: FingerprintStore, ids: Sequence[int]
) -> list[AnswerRow]:
    """Return one exact duplicate of each of these canonical rows that has any."""
    c = store.tables.fingerprint.c
    query = select(func.min(c.id)).where(store.dialect.is_one_of(c.copy_of, "ids")).group_by(c.copy_of)
    found: list[int] = []
    for some in batches(ids, _IDS_A_QUERY):
        found += connection.execute(query, {"ids": some}).scalars()
    return rows_of_ids(connection, store, found)


def canonical_rows_in_groups(
    connection: Connection, store: FingerprintStore, ids: Sequence[int]
) -> list[AnswerRow]:
    """Return the canonical rows of these groups."""
    return _rows(connection, store, "group_id", ids, canonical_only=True)


def read_members(
    connection: Connection, store: FingerprintStore, group_id: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (int64[g] ids, uint64[g] fingerprints) of the canonical rows of a group that have one."""
    c = store.tables.fingerprint.c
    query = select(c.id, c.fingerprint).where(
        c.group_id == group_id, c.copy_of.is_(None), c.fingerprint.is_not(None)
    )
    ids, values = list(zip(*connection.execute(query), strict=True)) or ((), ())
    return np.array(ids, np.int64), np.array(values, np.uint64)


def count_canonical(connection: Connection, store: FingerprintStore, group_id: int) -> int:
    """Return how many canonical rows a group has."""
    c = store.tables.fingerprint.c
    query = select(func.count()).where(c.group_id == group_id, c.copy_of.is_(None))
    return int(connection.execute(query).scalar_one())


def having_exact_duplicates(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> set[int]:
    """Return which of these rows have exact duplicates."""
    copy_of = store.tables.fingerprint.c.copy_of
    query = select(copy_of).where(store.dialect.is_one_of(copy_of, "ids")).distinct()
    found: set[int] = set()
    for some in batches(ids, _IDS_A_QUERY):
        found.update(connection.execute(query, {"ids": some}).scalars())
    return found


def write_links(
    connection: Connection,
    store: FingerprintStore,
    links: Sequence[tuple[int, int | None]],
    now: datetime,
) -> None:
    """Write (id, id of its canonical row, None where it is one itself)."""
    rows = ((row_id, copy_of, None if copy_of is None else now) for row_id, copy_of in links)
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("copy_of", "found_at"), rows)


def write_groups(
    connection: Connection,
    store: FingerprintStore,
    rows: Sequence[tuple[int, int | None, bool | None, bool | None]],
) -> None:
    """Write (id, group, is_loose, is_abridged); only representatives have the flags."""
    columns = ("group_id", "is_loose", "is_abridged")
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", columns, rows)


def group_sizes(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> dict[int, int]:
    """Return how many rows each of these groups has, exact duplicates included."""
    group_id = store.tables.fingerprint.c.group_id
    is_asked = store.dialect.is_one_of(group_id, "ids")
    query = select(group_id, func.count()).where(is_asked).group_by(group_id)
    found: dict[int, int] = {}
    for some in batches(ids, _IDS_A_QUERY):
        found |= {group: int(size) for group, size in connection.execute(query, {"ids": some})}
    return found


def write_sizes(
    connection: Connection, store: FingerprintStore, sizes: Sequence[tuple[int, int | None]]
) -> None:
    """Write (id of a representative, the size of its group); None for a row that is no longer one."""
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("group_size",), sizes)


def _rows(
    connection: Connection,
    store: FingerprintStore,
    column: str,
    values: Sequence[Any],
    *,
    canonical_only: bool = False,
) -> list[AnswerRow]:
    query = _query(store, column, canonical_only)
    rows: list[AnswerRow] = []
    for some in batches(values, _IDS_A_QUERY):
        found = connection.execute(query, {"values": some}).all()
        answers = map(AnswerRow._make, found)
        rows += [row._replace(digest=bytes(row.digest)) for row in answers]
    return rows


@lru_cache(maxsize=64)
def _query(store: FingerprintStore, column: str, canonical_only: bool) -> Select[Any]:
    """Cached: building the query takes as long as the database needs for some rows."""
    c = store.tables.fingerprint.c
    query = select(*(c[name] for name in AnswerRow._fields)).where(
        store.mine, store.dialect.is_one_of(c[column], "values")
    )
    return query.where(c.copy_of.is_(None)) if canonical_only else query
