"""The second proposer's bands: of each row that takes part in pairs, 32 values under which it is found.

A row's bands stand in the band table, one entry each, and together as its sketch beside its fingerprint, so
that they can be taken away again when the text they came from is gone. Under a recipe that serves, each row
has both or neither; while one is built beside it, sketches come with the rows and the entries at the switch.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, select, update

from db_dedup.dialects.batches import batches
from db_dedup.store.fingerprints import FingerprintStore

_ROWS_A_STATEMENT = 30
_IDS_A_QUERY = 1000


def sketched_ids(connection: Connection, store: FingerprintStore) -> NDArray[np.int64]:
    """int64[n]: the rows that have a sketch."""
    c = store.tables.fingerprint.c
    rows = connection.execute(select(c.id).where(store.mine, c.sketch.is_not(None))).scalars().all()
    return np.fromiter(rows, np.int64, len(rows))


def put_bands(
    connection: Connection, store: FingerprintStore, ids: NDArray[np.int64], sketches: NDArray[np.uint64]
) -> None:
    """Give rows without bands theirs.

    Args:
        connection: in a transaction.
        store: whose rows.
        ids: int64[n].
        sketches: uint64[n, 32].
    """
    put_entries(connection, store, ids, sketches)
    write_sketches(connection, store, [(i, s.tobytes()) for i, s in zip(ids.tolist(), sketches, strict=True)])


def put_entries(
    connection: Connection, store: FingerprintStore, ids: NDArray[np.int64], sketches: NDArray[np.uint64]
) -> None:
    """Write the entries of rows that have none yet; arguments as of `put_bands`."""
    if not ids.size:
        return
    values = sketches.view(np.int64)
    # In the order of the table: each page of its tree is then written once.
    order = np.argsort(values, axis=None, kind="stable")
    owners = np.repeat(ids, values.shape[1])[order]
    entries = zip(values.reshape(-1)[order].tolist(), owners.tolist(), strict=True)
    store.dialect.bulk_insert(connection, store.tables.band, ("value", "fingerprint_id"), entries)


def drop_bands(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Take rows out of the band table, those that are in it."""
    row, band, is_one_of = store.tables.fingerprint, store.tables.band, store.dialect.is_one_of
    query = select(row.c.id, row.c.sketch).where(is_one_of(row.c.id, "ids"), row.c.sketch.is_not(None))
    # No row has an entry under another row's value that is not its own as well.
    entries = delete(band).where(
        is_one_of(band.c.value, "own_values"), is_one_of(band.c.fingerprint_id, "ids")
    )
    for some in batches(ids, _IDS_A_QUERY):
        found = connection.execute(query, {"ids": some})
        sketched = [(row_id, bytes(sketch)) for row_id, sketch in found]
        for few in batches(sketched, _ROWS_A_STATEMENT):
            values = np.frombuffer(b"".join(sketch for _, sketch in few), np.int64)
            own = [row_id for row_id, _ in few]
            connection.execute(entries, {"own_values": values.tolist(), "ids": own})
        write_sketches(connection, store, [(row_id, None) for row_id, _ in sketched])


def drop_all_bands(connection: Connection, store: FingerprintStore) -> None:
    """Take every row out of the band table, whatever its sketch says."""
    row, band = store.tables.fingerprint, store.tables.band
    own = select(row.c.id).where(store.mine)
    connection.execute(delete(band).where(band.c.fingerprint_id.in_(own)))
    connection.execute(update(row).where(store.mine, row.c.sketch.is_not(None)).values(sketch=None))


def count_entries(connection: Connection, store: FingerprintStore) -> int:
    """How many entries the band table has of the rows."""
    row, band = store.tables.fingerprint, store.tables.band
    query = select(func.count()).select_from(row).join(band, band.c.fingerprint_id == row.c.id)
    return int(connection.execute(query.where(store.mine)).scalar_one())


def find_sharing(
    connection: Connection, store: FingerprintStore, sketches: NDArray[np.uint64]
) -> dict[int, tuple[int, NDArray[np.uint64]]]:
    """Rows that have a band in common with one of these sketches.

    Args:
        connection: to read through.
        store: whose rows.
        sketches: uint64[n, 32].

    Returns:
        id -> (fingerprint, uint64[32] its sketch).
    """
    row, band = store.tables.fingerprint, store.tables.band
    query = (
        select(row.c.id, row.c.fingerprint, row.c.sketch)
        .join(band, band.c.fingerprint_id == row.c.id)
        .where(store.dialect.is_one_of(band.c.value, "wanted"), store.mine)
    )
    found = {}
    wanted = np.unique(sketches.view(np.int64)).tolist()
    for some in batches(wanted, _ROWS_A_STATEMENT * 32):
        for row_id, fingerprint, sketch in connection.execute(query, {"wanted": some}):
            found[row_id] = fingerprint, np.frombuffer(bytes(sketch), np.uint64)
    return found


def write_sketches(
    connection: Connection, store: FingerprintStore, sketches: Sequence[tuple[int, bytes | None]]
) -> None:
    """Write (id, sketch) of some rows, None for those that are to have none."""
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("sketch",), sketches)
