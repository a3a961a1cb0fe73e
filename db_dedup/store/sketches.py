"""Sketches of rows (MinHash bands and passage hashes), and the index that finds rows by their values.

A sketch is stored twice: as a whole beside the row's fingerprint, and as one entry (value, row) for each of
its values in the index. The index is the table `band`. The whole sketch tells which entries to delete when
the text has changed. Under a recipe that serves, each row has both or neither. While another recipe is
built, sketches are written with the rows, and entries with the answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    update,
)

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader

_VALUES_A_STATEMENT = 960
_ENTRIES_A_LIST = 100_000
_ENTRIES_A_PIECE = 200_000
_IDS_A_QUERY = 1000


def sketched_ids(reader: Reader, store: FingerprintStore) -> NDArray[np.int64]:
    """Return int64[n], the ids of the rows that have a sketch."""
    c = store.tables.fingerprint.c
    query = select(c.id).where(store.mine, c.sketch.is_not(None))
    return np.fromiter((row[0] for row in reader.rows(query, c.id)), np.int64)


def put_sketches(connection: Connection, store: FingerprintStore, sketches: Mapping[int, bytes]) -> None:
    """Write the sketches of rows that have none, with their entries.

    Args:
        connection: in a transaction.
        store: whose rows.
        sketches: id -> sketch.
    """
    values = np.frombuffer(b"".join(sketches.values()), np.uint64)
    ids = np.repeat(np.array(list(sketches), np.int64), [len(sketch) // 8 for sketch in sketches.values()])
    put_entries(connection, store, [(values, ids)])
    write_sketches(connection, store, list(sketches.items()))


def put_entries(
    connection: Connection,
    store: FingerprintStore,
    entries: Iterable[tuple[NDArray[np.uint64], NDArray[np.int64]]],
) -> None:
    """Write the entries of rows that have none yet.

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


def drop_sketches(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Delete the sketches and entries of rows; rows without a sketch are left out."""
    row, band, is_one_of = store.tables.fingerprint, store.tables.band, store.dialect.is_one_of
    query = select(row.c.id, row.c.sketch).where(is_one_of(row.c.id, "ids"), row.c.sketch.is_not(None))
    # No row has an entry under another row's value that is not its own as well.
    delete_entries = delete(band).where(
        is_one_of(band.c.value, "own_values"), is_one_of(band.c.fingerprint_id, "ids")
    )
    for some in batches(ids, _IDS_A_QUERY):
        sketched = {row_id: bytes(sketch) for row_id, sketch in connection.execute(query, {"ids": some})}
        values = np.frombuffer(b"".join(sketched.values()), np.int64).tolist()
        owners = list(chain.from_iterable(repeat(i, len(sketch) // 8) for i, sketch in sketched.items()))
        for first in range(0, len(values), _VALUES_A_STATEMENT):
            part = slice(first, first + _VALUES_A_STATEMENT)
            connection.execute(delete_entries, {"own_values": values[part], "ids": sorted(set(owners[part]))})
        write_sketches(connection, store, [(row_id, None) for row_id in sketched])


def drop_all_sketches(connection: Connection, store: FingerprintStore) -> None:
    """Delete all sketches of a store's rows, and all entries of these rows, whether or not a sketch has
    them."""
    row, band = store.tables.fingerprint, store.tables.band
    own = select(row.c.id).where(store.mine)
    connection.execute(delete(band).where(band.c.fingerprint_id.in_(own)))
    connection.execute(update(row).where(store.mine, row.c.sketch.is_not(None)).values(sketch=None))


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


def count_sketched(connection: Connection, store: FingerprintStore) -> int:
    """Return how many values the rows' sketches have."""
    sketch = store.tables.fingerprint.c.sketch
    query = select(func.sum(func.length(sketch))).where(store.mine)
    return int(connection.execute(query).scalar_one() or 0) // 8


def count_entries(connection: Connection, store: FingerprintStore) -> int:
    """Return how many entries the index has of the rows."""
    row, band = store.tables.fingerprint, store.tables.band
    query = select(func.count()).select_from(row).join(band, band.c.fingerprint_id == row.c.id)
    return int(connection.execute(query.where(store.mine)).scalar_one())


@dataclass(frozen=True)
class Sharing:
    """Entries of some values, and the r rows that have them.

    Attributes:
        ids: int64[r], ascending.
        fingerprints: uint64[r].
        counts: int64[r], how many values each row's sketch has.
        values: uint64[e], of the entries.
        rows: int64[e], positions of their rows among the r, ascending.
    """

    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    counts: NDArray[np.int64]
    values: NDArray[np.uint64]
    rows: NDArray[np.int64]

    def parts(self, most_rows: int) -> Iterator["Sharing"]:
        """Yield the same, at most so many rows at a time."""
        for first in range(0, self.ids.size, most_rows):
            chosen = slice(first, first + most_rows)
            begin, end = np.searchsorted(self.rows, [first, first + most_rows])
            entries = slice(begin, end)
            yield Sharing(
                self.ids[chosen],
                self.fingerprints[chosen],
                self.counts[chosen],
                self.values[entries],
                self.rows[entries] - first,
            )


def find_sharing(
    connection: Connection, store: FingerprintStore, values: NDArray[np.uint64]
) -> Iterator[Sharing]:
    """Find the entries of these values, of one sketch or of several; all entries of a row come together.

    A phrase that a whole table shares has an entry for each row. Where the entries are too many for the
    memory, they are read by ranges of row ids.

    Args:
        connection: to read through.
        store: whose rows.
        values: uint64[n].

    Yields:
        Entries of rows whose ids are above those before.
    """
    wanted = np.unique(values).view(np.int64).tolist()
    found = _entries(connection, store, wanted, None)
    if found is not None:
        yield _with_rows(connection, store, *found)
        return
    row = store.tables.fingerprint
    highest = int(connection.execute(select(func.max(row.c.id))).scalar_one() or 0)
    first, width = 0, max(1, highest // 2)
    while first <= highest:
        found = _entries(connection, store, wanted, (first, first + width - 1))
        if found is None:
            width //= 2
            continue
        yield _with_rows(connection, store, *found)
        first += width
        if found[0].size < _ENTRIES_A_PIECE // 4:
            width *= 2


def _entries(
    connection: Connection, store: FingerprintStore, wanted: Sequence[int], ids: tuple[int, int] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return (int64[e] values, int64[e] ids of their rows) of the entries of these values.

    Args:
        connection: to read through.
        store: whose rows.
        wanted: values.
        ids: only of rows from the first to the second id. One row alone never has too many entries.

    Returns:
        None where there are too many.
    """
    band, is_one_of = store.tables.band, store.dialect.is_one_of
    query = select(band.c.value, band.c.fingerprint_id).where(is_one_of(band.c.value, "wanted"))
    if ids is not None:
        query = query.where(band.c.fingerprint_id.between(*ids))
    is_bounded = ids is None or ids[0] < ids[1]
    if is_bounded:
        query = query.limit(_ENTRIES_A_PIECE + 1)
    parts, count = [np.empty((0, 2), np.int64)], 0
    for some in batches(wanted, _VALUES_A_STATEMENT):
        rows = connection.execute(query, {"wanted": some}).all()
        count += len(rows)
        if is_bounded and count > _ENTRIES_A_PIECE:
            return None
        parts.append(np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2))
    entries = np.concatenate(parts)
    return entries[:, 0], entries[:, 1]


def _with_rows(
    connection: Connection, store: FingerprintStore, values: NDArray[np.int64], owners: NDArray[np.int64]
) -> Sharing:
    """Return the entries with what is stored of their rows."""
    # A query of its own: a planner that does not know how few entries a value has would rather join whole
    # tables. Meanwhile a row may have lost its sketch, and its entries with it.
    row, is_one_of = store.tables.fingerprint, store.dialect.is_one_of
    query = select(row.c.id, row.c.fingerprint, func.length(row.c.sketch)).where(
        is_one_of(row.c.id, "ids"), store.mine, row.c.sketch.is_not(None)
    )
    found: list[tuple[int, int, int]] = []
    for some in batches(np.unique(owners).tolist(), _IDS_A_QUERY):
        found += map(tuple, connection.execute(query, {"ids": some}).all())
    found.sort()
    ids = np.array([row_id for row_id, _, _ in found], np.int64)
    is_mine = np.isin(owners, ids)
    rows = np.searchsorted(ids, owners[is_mine])
    order = np.argsort(rows, kind="stable")
    return Sharing(
        ids,
        np.array([fingerprint for _, fingerprint, _ in found], np.uint64),
        np.array([size // 8 for _, _, size in found], np.int64),
        values[is_mine][order].view(np.uint64),
        rows[order],
    )


def write_sketches(
    connection: Connection, store: FingerprintStore, sketches: Sequence[tuple[int, bytes | None]]
) -> None:
    """Write (id, sketch) of some rows; None deletes a sketch."""
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("sketch",), sketches)
