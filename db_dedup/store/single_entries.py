"""The single entries of the index of sketches: (value, row) of rows that have changed since a scan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
)

from db_dedup.dialects.batches import number_batches
from db_dedup.flow.candidates.segments import Entries, hashes_of
from db_dedup.store.fingerprints import FingerprintStore

_ENTRIES_A_LIST = 100_000
_VALUES_A_STATEMENT = 960
_AFTER_AN_ID: Final = ";"


def put_entries(
    connection: Connection, store: FingerprintStore, values: NDArray[np.int64], ids: NDArray[np.int64]
) -> None:
    """Write the single entries of rows that have none yet.

    Args:
        connection: in a transaction.
        store: whose rows.
        values: int64[n]; fastest in ascending order: each page of the database's tree is written once then.
        ids: int64[n], of their rows.
    """
    rows = _listed(values, ids)
    store.dialect.bulk_insert(connection, store.tables.band, ("value", "fingerprint_id"), rows)


def _listed(values: NDArray[np.int64], ids: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield them as Python's numbers, a part at a time: these take five times the memory."""
    for first in range(0, values.size, _ENTRIES_A_LIST):
        part = slice(first, first + _ENTRIES_A_LIST)
        yield from zip(values[part].tolist(), ids[part].tolist(), strict=True)


def read_entries(
    connection: Connection,
    store: FingerprintStore,
    wanted: Sequence[int],
    ids: tuple[int, int] | None,
    most: int | None,
) -> Entries | None:
    """Return the single entries that have some values; None if they are `most` or more.

    Args:
        connection: to read through.
        store: whose rows.
        wanted: the values, as signed numbers.
        ids: only of rows from the first to the second id.
        most: None if they are never too many.
    """
    parameters: dict[str, Any] = {} if ids is None else {"first": ids[0], "last": ids[1]}
    if len(wanted) <= _VALUES_A_STATEMENT:
        found = _read_rows(connection, store, parameters | {"wanted": wanted}, most)
        return None if most is not None and found[1].size >= most else _as_entries(*found)
    given = [parameters | {"wanted": some} for some in number_batches(wanted, _VALUES_A_STATEMENT)]
    if most is not None:
        count = 0
        for each in given:
            count += connection.execute(_query(store, "counted", ids is not None), each).scalar_one()
            if count >= most:
                return None
    parts = [_read_joined(connection, store, each) for each in given]
    return _as_entries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


_Columns = tuple[NDArray[np.int64], NDArray[np.int64]]
"""int64[e] values, int64[e] ids of their rows."""


def _as_entries(values: NDArray[np.int64], ids: NDArray[np.int64]) -> Entries:
    return Entries(hashes_of(values.view(np.uint64)), ids)


def _read_rows(
    connection: Connection, store: FingerprintStore, parameters: Mapping[str, Any], most: int | None = None
) -> _Columns:
    """Read each entry as a row, at most so many."""
    query = _query(store, "rows" if most is None else "some rows", "first" in parameters)
    limit = {} if most is None else {"most": most}
    rows = connection.execute(query, {**parameters, **limit}).all()
    entries = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)
    return np.ascontiguousarray(entries[:, 0]), entries[:, 1]


def _read_joined(connection: Connection, store: FingerprintStore, parameters: Mapping[str, Any]) -> _Columns:
    """Read the ids of each value as one text: to a driver that is one row of a result."""
    rows = connection.execute(_query(store, "joined", "first" in parameters), parameters).all()
    values, counts, texts = [*zip(*rows, strict=True)] or [(), (), ()]
    text = "".join(texts)
    ids = np.fromstring(text[: -len(_AFTER_AN_ID)], np.int64, sep=_AFTER_AN_ID)
    if text and (not text.endswith(_AFTER_AN_ID) or ids.size != sum(counts)):
        # MySQL cuts a long text. Where a number is cut, the text ends without the sign after it.
        return _read_rows(connection, store, parameters)
    return np.repeat(np.array(values, np.int64), np.array(counts, np.int64)), ids


@lru_cache(maxsize=64)
def _query(
    store: FingerprintStore, what: Literal["rows", "some rows", "counted", "joined"], of_range: bool
) -> Select[Any]:
    """Cached: building it takes as long as the database needs for some values."""
    c = store.tables.band.c
    rows = select(c.value, c.fingerprint_id)
    ids = func.aggregate_strings(cast(c.fingerprint_id, String) + _AFTER_AN_ID, "")
    query = {
        "rows": rows,
        "some rows": rows.limit(bindparam("most")),
        "counted": select(func.count()),
        "joined": select(c.value, func.count(), ids).group_by(c.value),
    }[what].where(store.dialect.is_one_of(c.value, "wanted"))
    return query.where(c.fingerprint_id.between(bindparam("first"), bindparam("last"))) if of_range else query


def has_more_entries(connection: Connection, store: FingerprintStore, most: int) -> bool:
    """Return whether there are more single entries than so many, of all tables and recipes."""
    some = select(store.tables.band.c.fingerprint_id).limit(most + 1).subquery()
    return int(connection.execute(select(func.count()).select_from(some)).scalar_one()) > most


def drop_all_entries(connection: Connection, store: FingerprintStore) -> None:
    """Delete all single entries of a store's rows."""
    row, band = store.tables.fingerprint, store.tables.band
    own = select(row.c.id).where(store.mine)
    connection.execute(delete(band).where(band.c.fingerprint_id.in_(own)))


@dataclass(frozen=True)
class Entry:
    """A place in the index, which is sorted by value, then by row."""

    value: int
    row_id: int

    @property
    def share(self) -> float:
        """How much of the index is before it, from 0 to 1: values are hashes, which are evenly spread."""
        return (self.value + 2**63) / 2**64


FIRST_ENTRY: Final = Entry(-(2**63), 0)


def entry_after(connection: Connection, store: FingerprintStore, begin: Entry, count: int) -> Entry | None:
    """Return the place `count` entries after this one, of any table and recipe; None past the last entry."""
    band = store.tables.band
    query = (
        select(band.c.value, band.c.fingerprint_id)
        .where(_is_from(band, begin))
        .order_by(band.c.value, band.c.fingerprint_id)
        .offset(count)
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else Entry(int(row[0]), int(row[1]))


def drop_entries_between(
    connection: Connection, store: FingerprintStore, begin: Entry, end: Entry | None, ids: tuple[int, int]
) -> None:
    """Delete the entries of the store's rows from a part of the index.

    Args:
        connection: in a transaction.
        store: whose rows.
        begin: where the part begins.
        end: the first place after it; None for the end of the table.
        ids: the least and the greatest id of the rows. Entries of other ids stay: rows that are written
            meanwhile have greater ones.
    """
    row, band = store.tables.fingerprint, store.tables.band
    statement = delete(band).where(_is_from(band, begin), band.c.fingerprint_id.between(*ids))
    if not are_of_one_store(connection, store):
        # For each entry by the row's id: the rows' own index would be read as a whole for each part.
        statement = statement.where(exists().where(row.c.id == band.c.fingerprint_id, store.mine))
    if end is not None:
        is_before = and_(band.c.value <= end.value, not_(_is_from(band, end)))
        statement = statement.where(is_before)
    connection.execute(statement)


def are_of_one_store(connection: Connection, store: FingerprintStore) -> bool:
    """Return whether only one table is watched, and no other recipe has fingerprints.

    Then the single entries of all rows up to the greatest id are the store's. Rows of a table that is watched
    later get greater ids, or in SQLite cannot be written before this transaction ends. To look up the row of
    each entry would take longer than to delete the entry.
    """
    watched = store.tables.watched_table
    count = connection.execute(select(func.count()).select_from(watched)).scalar_one()
    return int(count) == 1 and store.is_alone(connection)


def _is_from(band: Table, begin: Entry) -> ColumnElement[bool]:
    """Return the condition that an entry is at a place or after it.

    The first part is on the value alone, so that the planner can use the index.
    """
    value, row_id = band.c.value, band.c.fingerprint_id
    return and_(value >= begin.value, or_(value > begin.value, row_id >= begin.row_id))
