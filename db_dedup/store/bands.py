"""The second proposer's entries: of each row that takes part in pairs, the values under which it is found.

The values of a row's sketch stand in the band table, one entry each, and together beside its fingerprint, so
that they can be taken away again when the text they came from is gone. Under a recipe that serves, each row
has both or neither; while one is built beside it, sketches come with the rows and the entries at the switch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, select, update

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore

_VALUES_A_STATEMENT = 960
_ENTRIES_A_LIST = 100_000
_IDS_A_QUERY = 1000


def sketched_ids(connection: Connection, store: FingerprintStore) -> NDArray[np.int64]:
    """int64[n]: the rows that have a sketch."""
    c = store.tables.fingerprint.c
    rows = connection.execute(select(c.id).where(store.mine, c.sketch.is_not(None))).scalars().all()
    return np.fromiter(rows, np.int64, len(rows))


def put_bands(connection: Connection, store: FingerprintStore, sketches: Mapping[int, bytes]) -> None:
    """Give rows without a sketch theirs, and its entries.

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
    """As Python's numbers, a part of them at a time: they take five times the memory."""
    for first in range(0, values.size, _ENTRIES_A_LIST):
        part = slice(first, first + _ENTRIES_A_LIST)
        yield from zip(values[part].tolist(), ids[part].tolist(), strict=True)


def drop_bands(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Take rows out of the band table, those that are in it."""
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


def drop_all_bands(connection: Connection, store: FingerprintStore) -> None:
    """Take every row out of the band table, whatever its sketch says."""
    row, band = store.tables.fingerprint, store.tables.band
    own = select(row.c.id).where(store.mine)
    connection.execute(delete(band).where(band.c.fingerprint_id.in_(own)))
    connection.execute(update(row).where(store.mine, row.c.sketch.is_not(None)).values(sketch=None))


def count_sketched(connection: Connection, store: FingerprintStore) -> int:
    """How many values the rows' sketches have."""
    sketch = store.tables.fingerprint.c.sketch
    query = select(func.sum(func.length(sketch))).where(store.mine)
    return int(connection.execute(query).scalar_one() or 0) // 8


def count_entries(connection: Connection, store: FingerprintStore) -> int:
    """How many entries the band table has of the rows."""
    row, band = store.tables.fingerprint, store.tables.band
    query = select(func.count()).select_from(row).join(band, band.c.fingerprint_id == row.c.id)
    return int(connection.execute(query.where(store.mine)).scalar_one())


@dataclass(frozen=True)
class Sharing:
    """Entries that stand under some values, and the r rows whose they are.

    Attributes:
        ids: int64[r].
        fingerprints: uint64[r].
        counts: int64[r], how many values each row's sketch has.
        values: uint64[e], of the entries.
        rows: int64[e], positions of their rows among the r.
    """

    ids: NDArray[np.int64]
    fingerprints: NDArray[np.uint64]
    counts: NDArray[np.int64]
    values: NDArray[np.uint64]
    rows: NDArray[np.int64]


def find_sharing(connection: Connection, store: FingerprintStore, values: NDArray[np.uint64]) -> Sharing:
    """The entries under these values, of one sketch or of several.

    Args:
        connection: to read through.
        store: whose rows.
        values: uint64[n].
    """
    # Two queries: a planner that does not know how few entries a value has would rather join whole tables.
    # In between a row may have lost its sketch, and stands under none of the values any more.
    row, band, is_one_of = store.tables.fingerprint, store.tables.band, store.dialect.is_one_of
    query = select(band.c.value, band.c.fingerprint_id).where(is_one_of(band.c.value, "wanted"))
    entries: list[Sequence[int]] = []
    for some in batches(np.unique(values).view(np.int64).tolist(), _VALUES_A_STATEMENT):
        entries += connection.execute(query, {"wanted": some}).all()
    shared, owners = np.fromiter(chain.from_iterable(entries), np.int64).reshape(-1, 2).T
    query_rows = select(row.c.id, row.c.fingerprint, func.length(row.c.sketch)).where(
        is_one_of(row.c.id, "ids"), store.mine, row.c.sketch.is_not(None)
    )
    found: list[tuple[int, int, int]] = []
    for some in batches(np.unique(owners).tolist(), _IDS_A_QUERY):
        found += map(tuple, connection.execute(query_rows, {"ids": some}).all())
    found.sort()
    ids = np.array([row_id for row_id, _, _ in found], np.int64)
    is_mine = np.isin(owners, ids)
    return Sharing(
        ids,
        np.array([fingerprint for _, fingerprint, _ in found], np.uint64),
        np.array([size // 8 for _, _, size in found], np.int64),
        shared[is_mine].view(np.uint64),
        np.searchsorted(ids, owners[is_mine]),
    )


def write_sketches(
    connection: Connection, store: FingerprintStore, sketches: Sequence[tuple[int, bytes | None]]
) -> None:
    """Write (id, sketch) of some rows, None for those that are to have none."""
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("sketch",), sketches)
