"""The rows around a change, as they are stored: for the worker, which rewrites no more than it must."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint

_IDS_A_QUERY = 1000


class AnswerRow(NamedTuple):
    """A stored row and where it stands in the answer; ids are those of the fingerprint table."""

    id: int
    row_key: str
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    copy_of: int | None
    group_id: int | None
    is_loose: bool | None
    is_abridged: bool | None
    group_size: int | None

    def updated(self, row: RowFingerprint) -> "AnswerRow":
        """The same row once this is stored of it."""
        return self._replace(order_value=row.order_value, fingerprint=row.fingerprint, digest=row.digest)


def rows_of_keys(connection: Connection, store: FingerprintStore, row_keys: Sequence[str]) -> list[AnswerRow]:
    """The rows of these keys."""
    return _rows(connection, store, "row_key", row_keys)


def rows_of_ids(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[AnswerRow]:
    """The rows of these ids."""
    return _rows(connection, store, "id", ids)


def classes_of(connection: Connection, store: FingerprintStore, digests: Sequence[bytes]) -> list[AnswerRow]:
    """Every row with one of these digests."""
    return _rows(connection, store, "digest", digests)


def heads_of(connection: Connection, store: FingerprintStore, digests: Sequence[bytes]) -> list[AnswerRow]:
    """Of the rows with one of these digests those that are no copies."""
    return _rows(connection, store, "digest", digests, heads_only=True)


def copies_of(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[AnswerRow]:
    """Every copy of one of these rows."""
    return _rows(connection, store, "copy_of", ids)


def heads_in_groups(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[AnswerRow]:
    """The rows of these groups that are no copies."""
    return _rows(connection, store, "group_id", ids, heads_only=True)


def with_copies(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> set[int]:
    """Which of these rows have copies."""
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
    """Write (id, id of the row it copies or None)."""
    rows = ((row_id, copy_of, None if copy_of is None else now) for row_id, copy_of in links)
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("copy_of", "found_at"), rows)


def write_groups(
    connection: Connection,
    store: FingerprintStore,
    rows: Sequence[tuple[int, int | None, bool | None, bool | None]],
) -> None:
    """Write (id, group, is_loose, is_abridged); the flags stand at representatives alone."""
    columns = ("group_id", "is_loose", "is_abridged")
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", columns, rows)


def count_rows(connection: Connection, store: FingerprintStore) -> int:
    """How many rows are stored."""
    query = select(func.count()).select_from(store.tables.fingerprint).where(store.mine)
    return int(connection.execute(query).scalar_one())


def group_sizes(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> dict[int, int]:
    """How many rows each of these groups has, copies included."""
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
    """Write (id of a representative, the size of its group); None for a row that is none any more."""
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("group_size",), sizes)


def _rows(
    connection: Connection,
    store: FingerprintStore,
    column: str,
    values: Sequence[Any],
    *,
    heads_only: bool = False,
) -> list[AnswerRow]:
    query = _query(store, column, heads_only)
    rows: list[AnswerRow] = []
    for some in batches(values, _IDS_A_QUERY):
        found = connection.execute(query, {"values": some}).all()
        rows += [AnswerRow._make((*row[:4], bytes(row[4]), *row[5:])) for row in found]
    return rows


@lru_cache(maxsize=64)
def _query(store: FingerprintStore, column: str, heads_only: bool) -> Select[Any]:
    """Kept, since building it takes as long as the database needs for some rows."""
    c = store.tables.fingerprint.c
    query = select(*(c[name] for name in AnswerRow._fields)).where(
        store.mine, store.dialect.is_one_of(c[column], "values")
    )
    return query.where(c.copy_of.is_(None)) if heads_only else query
