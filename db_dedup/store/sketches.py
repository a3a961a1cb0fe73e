"""Sketches of rows (MinHash bands and passage hashes), and the index that finds rows by their hashes.

The index has two levels. A scan packs the hashes of all rows, in 32 bits, into segments (`segments.py`). Of a
row that changes later, each hash is a single entry (value, row) in the table `band`, or in the segments, and
then a bit beside these tells that the row has changed (`changed_rows.py`). Its sketch is stored beside its
fingerprint, which tells the entries to delete when its text changes again. So of a row that has a sketch, the
fingerprint table has either `sketch` (the row has changed) or `sketch_size` (its entries are in segments).
What else the segments have is out of date. A look-up may find such rows, too, as it may find rows whose
hashes are equal in 32 bits alone. Whoever looks up compares the sketches of both texts.
While another recipe is built, sizes are written with the rows, and segments with the answer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    func,
    or_,
    select,
    update,
)

from db_dedup.dialects.batches import batches
from db_dedup.flow.candidates.segments import Entries
from db_dedup.records.pages import take_lists
from db_dedup.store import segments
from db_dedup.store.changed_rows import mark_changed
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.own_entries import NewEntries
from db_dedup.store.reader import Reader
from db_dedup.store.segment_lookup import IdRange
from db_dedup.store.single_entries import drop_all_entries, put_entries

_IDS_A_QUERY = 1000
_SKETCHES_A_PART = 10_000
_ROWS_A_PART = 10_000


@dataclass(frozen=True)
class SketchedRows:
    """The n rows that have a sketch.

    Attributes:
        ids: int64[n], ascending.
        sizes: int64[n], how many hashes each has.
        is_single: bool[n], whether it has changed since the segments were written, and its sketch is stored.
    """

    ids: NDArray[np.int64]
    sizes: NDArray[np.int64]
    is_single: NDArray[np.bool_]

    def aligned(self, ids: NDArray[np.int64]) -> "SketchedRows":
        """Return the same of these rows; a row without a sketch has the size -1."""
        if self.ids.size == 0:
            return SketchedRows(ids, np.full(ids.size, -1, np.int64), np.zeros(ids.size, np.bool_))
        places = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        has = self.ids[places] == ids
        return SketchedRows(ids, np.where(has, self.sizes[places], -1), has & self.is_single[places])


def read_sketched_rows(reader: Reader, store: FingerprintStore) -> SketchedRows:
    """Return which rows have a sketch."""
    c = store.tables.fingerprint.c
    query = select(c.id, c.sketch_size, func.length(c.sketch)).where(store.mine, has_sketch(store))
    parts = [np.empty((3, 0), np.int64)]
    for rows in take_lists(reader.rows(query, c.id), lambda: _ROWS_A_PART):
        found = [(row_id, _size(size, length), length is not None) for row_id, size, length in rows]
        parts.append(np.array(found, np.int64).T)
    ids, sizes, is_single = np.concatenate(parts, axis=1)
    order = np.argsort(ids)
    return SketchedRows(ids[order], sizes[order], is_single[order].astype(np.bool_))


class FeatureSets(NamedTuple):
    """n rows with a sketch: int64[n] ids, ascending, and the sets of their features, None for no set."""

    ids: NDArray[np.int64]
    sets: list[bytes | None]


def read_feature_sets(connection: Connection, store: FingerprintStore, ids: IdRange) -> FeatureSets:
    """Return the sets of the rows with a sketch from the first to the second id."""
    c = store.tables.fingerprint.c
    query = select(c.id, c.feature_set).where(store.mine, has_sketch(store), c.id.between(*ids))
    rows = connection.execute(query.order_by(c.id)).all()
    sets = [None if row[1] is None else bytes(row[1]) for row in rows]
    return FeatureSets(np.array([row[0] for row in rows], np.int64), sets)


def read_single_sketches(reader: Reader, store: FingerprintStore, *, by_entries: bool = False) -> Entries:
    """Return the entries that all changed rows should have, in 32 bits, in the segments or as single ones.

    Args:
        reader: of our tables.
        store: the table and recipe.
        by_entries: look for the rows by the entries that there are, which reads a small part of a large
            table. A fold that broke off may have deleted the entries of a row already.
    """
    c = store.tables.fingerprint.c
    query = select(c.id, c.sketch).where(store.mine, c.sketch.is_not(None))
    if by_entries:
        query = query.where(c.id.in_(select(store.tables.band.c.fingerprint_id)))
    parts = [segments.NO_ENTRIES]
    parts += [
        segments.entries_of([row[0] for row in rows], [bytes(row[1]) for row in rows])
        for rows in batches(reader.rows(query, c.id), _SKETCHES_A_PART, lambda _: 0)
    ]
    return segments.joined(parts)


def count_single_entries(connection: Connection, store: FingerprintStore) -> int:
    """Return how many hashes the changed rows have, most of which may be in the segments."""
    sketch = store.tables.fingerprint.c.sketch
    query = select(func.sum(func.length(sketch))).where(store.mine, sketch.is_not(None))
    return int(connection.execute(query).scalar_one() or 0) // 8


def has_sketch(store: FingerprintStore) -> ColumnElement[bool]:
    """Return the condition that a row has a sketch."""
    c = store.tables.fingerprint.c
    return or_(c.sketch_size.is_not(None), c.sketch.is_not(None))


def set_generation(store: FingerprintStore) -> ColumnElement[int | None]:
    """Return the number of the active generation for a row whose set of features there is its present one.

    That is a row with a sketch that has not changed since; for others NULL.
    """
    c, index = store.tables.fingerprint.c, store.tables.sketch_index
    number = select(index.c.generation).where(
        index.c.table_id == store.table_id, index.c.recipe == store.recipe
    )
    is_in_segments = and_(c.sketch.is_(None), c.sketch_size.is_not(None))
    return case((is_in_segments, number.scalar_subquery())).label("set_generation")


def _size(sketch_size: int | None, sketch_bytes: int | None) -> int:
    return int(sketch_size or 0) if sketch_bytes is None else int(sketch_bytes) // 8


def put_sketches(
    connection: Connection,
    store: FingerprintStore,
    sketches: Mapping[int, bytes],
    written: Collection[int] = (),
    new_entries: Sequence[NewEntries] = (),
) -> None:
    """Write the sketches of rows that have none, with their entries.

    Args:
        connection: in a transaction.
        store: whose rows.
        sketches: id -> sketch.
        written: ids of the rows whose sketch is stored already, without its entries.
        new_entries: of the rows of whose sketches the segments of a generation have a part. If it is active,
            only the other entries are written, and the rows are marked as changed. All are in `sketches`.
    """
    entered = {**sketches, **_entries_to_write(connection, store, new_entries)}
    values, ids = _entries_of(entered)
    put_entries(connection, store, values, ids)
    others = ((row_id, sketch) for row_id, sketch in sketches.items() if row_id not in written)
    write_sketches(connection, store, others)


def _entries_to_write(
    connection: Connection, store: FingerprintStore, new_entries: Sequence[NewEntries]
) -> dict[int, bytes]:
    """Return id -> hashes of the rows that do not need all entries, and mark these rows as changed."""
    generation = segments.find_generation(connection, store) if new_entries else None
    if generation is None:
        return {}
    found = {new.row_id: new.sketch for new in new_entries if new.generation == generation.number}
    mark_changed(connection, store, generation, list(found))
    return found


def drop_sketches(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> None:
    """Delete the sketches of rows and their single entries; rows without a sketch are left out."""
    write_sketches(connection, store, dict.fromkeys(drop_entries(connection, store, ids)).items())


def drop_entries(connection: Connection, store: FingerprintStore, ids: Sequence[int]) -> list[int]:
    """Delete the single entries of rows, whose sketches the caller deletes.

    Returns:
        the ids of the rows that have a sketch.
    """
    query = _own_sketches(store)
    sketched: list[int] = []
    for some in batches(ids, _IDS_A_QUERY):
        found = {row_id: bytes(sketch or b"") for row_id, sketch in connection.execute(query, {"ids": some})}
        values, owners = _entries_of(found)
        keys = zip(values.tolist(), owners.tolist(), strict=True)
        store.dialect.bulk_delete_keys(connection, store.tables.band, ("value", "fingerprint_id"), keys)
        sketched += found
    return sketched


def _entries_of(sketches: Mapping[int, bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the values of id -> sketch and the ids of their rows, in the order of the index.

    So each page of the index is read and written once.
    """
    values = np.frombuffer(b"".join(sketches.values()), np.int64)
    ids = np.repeat(np.array(list(sketches), np.int64), [len(sketch) // 8 for sketch in sketches.values()])
    order = np.argsort(values, kind="stable")
    return values[order], ids[order]


@lru_cache(maxsize=64)
def _own_sketches(store: FingerprintStore) -> Select[Any]:
    """Build the query for (id, sketch) of rows that have one."""
    c = store.tables.fingerprint.c
    return select(c.id, c.sketch).where(store.dialect.is_one_of(c.id, "ids"), has_sketch(store))


def drop_all_sketches(connection: Connection, store: FingerprintStore) -> None:
    """Delete all sketches and single entries of a store's rows, and deactivate the segments.

    Entries that belong to no sketch are deleted, too.
    """
    row = store.tables.fingerprint
    drop_all_entries(connection, store)
    without = update(row).where(store.mine, has_sketch(store)).values(sketch=None, sketch_size=None)
    connection.execute(without)
    segments.drop_index(connection, store)


def write_sketches(
    connection: Connection, store: FingerprintStore, sketches: Iterable[tuple[int, bytes | None]]
) -> None:
    """Write (id, sketch) of rows that have changed since the segments were written; None deletes a sketch."""
    rows = ((row_id, sketch, None) for row_id, sketch in sketches)
    columns = ("sketch", "sketch_size")
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", columns, rows)


def write_sizes(
    connection: Connection, store: FingerprintStore, sizes: Iterable[tuple[int, int | None]]
) -> None:
    """Write (id, number of hashes) of rows whose entries are in the segments; None deletes a sketch."""
    rows = ((row_id, None, size) for row_id, size in sizes)
    columns = ("sketch", "sketch_size")
    store.dialect.bulk_update(connection, store.tables.fingerprint, "id", columns, rows)
