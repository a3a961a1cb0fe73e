"""The single entries of the index of sketches: (value, row) of rows that have changed since a scan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, not_, or_, select

from db_dedup.store.fingerprints import FingerprintStore

_ENTRIES_A_LIST = 100_000


def put_entries(
    connection: Connection,
    store: FingerprintStore,
    entries: Iterable[tuple[NDArray[np.uint64], NDArray[np.int64]]],
) -> None:
    """Write the single entries of rows that have none yet.

    Args:
        connection: in a transaction.
        store: whose rows.
        entries: some of them at a time: uint64[n] values, int64[n] ids of their rows. A table's worth is
            written fastest in ascending order: each page of the database's tree is then written once.
    """
    rows = chain.from_iterable(_listed(values.view(np.int64), ids) for values, ids in entries)
    store.dialect.bulk_insert(connection, store.tables.band, ("value", "fingerprint_id"), rows)


def _listed(values: NDArray[np.int64], ids: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield them as Python's numbers, a part at a time: these take five times the memory."""
    for first in range(0, values.size, _ENTRIES_A_LIST):
        part = slice(first, first + _ENTRIES_A_LIST)
        yield from zip(values[part].tolist(), ids[part].tolist(), strict=True)


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
        ids: the least and the greatest id of the rows, so that most other rows need not be looked up.
    """
    row, band = store.tables.fingerprint, store.tables.band
    # For each entry by the row's id: the rows' own index would be read as a whole for each part.
    of_store = exists().where(row.c.id == band.c.fingerprint_id, store.mine)
    statement = delete(band).where(_is_from(band, begin), band.c.fingerprint_id.between(*ids), of_store)
    if end is not None:
        is_before = and_(band.c.value <= end.value, not_(_is_from(band, end)))
        statement = statement.where(is_before)
    connection.execute(statement)


def _is_from(band: Table, begin: Entry) -> ColumnElement[bool]:
    """Return whether an entry is at a place or after it; the planner uses the condition on the value
    alone."""
    value, row_id = band.c.value, band.c.fingerprint_id
    return and_(value >= begin.value, or_(value > begin.value, row_id >= begin.row_id))
