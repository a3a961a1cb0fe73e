"""What must hold of the index of sketches at any time, whoever has written it."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, or_, select

from db_dedup import Deduplicator
from db_dedup.flow.candidates.segments import hashes_of
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.store import segments, watched_tables
from db_dedup.store.changed_rows import read_changed
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import serving_frames
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable


def assert_bands_are_exact(dedup: Deduplicator, name: str = "petitions") -> int:
    """Rows that take part in pairs have the bands of their text, and nothing else has any.

    Returns:
        How many rows have bands.
    """
    tables = dedup.database.tables
    row, band = tables.fingerprint.c, tables.band.c
    with dedup.database.engine.connect() as connection:
        stored = watched_tables.find_table(connection, tables, name)
        assert stored is not None
        query = select(row.id, row.row_key).where(
            row.table_id == stored.id,
            row.recipe == stored.recipe,
            row.copy_of.is_(None),
            row.fingerprint.is_not(None),
        )
        heads: dict[int, str] = dict(map(tuple, connection.execute(query)))
        own = select(row.id, row.sketch, row.sketch_size).where(
            row.table_id == stored.id, or_(row.sketch.is_not(None), row.sketch_size.is_not(None))
        )
        sketched = {row_id: (sketch, size) for row_id, sketch, size in connection.execute(own)}
        others = set(connection.execute(select(row.id).where(row.table_id != stored.id)).scalars())
        entries = [tuple(entry) for entry in connection.execute(select(band.fingerprint_id, band.value))]
        wanted = _sketches_of(connection, dedup, stored, heads) if stored.watched.rule.sketches else {}
        store = FingerprintStore(dedup.database.dialect, tables, stored.id, stored.recipe or 0)
        packed = packed_entries(connection, store)
        changed = read_changed(connection, store, np.array(sorted(sketched), np.int64))
    assert sketched.keys() == wanted.keys()
    single = {row_id: bytes(sketch) for row_id, (sketch, _) in sketched.items() if sketch is not None}
    assert single == {row_id: wanted[row_id] for row_id in single}
    assert all(size is None for sketch, size in sketched.values() if sketch is not None)
    values = {row_id: np.frombuffer(sketch, np.int64).tolist() for row_id, sketch in single.items()}
    found = sorted(entry for entry in entries if entry[0] not in others)
    assert set(found) <= {(row_id, value) for row_id, own in values.items() for value in own}
    assert len(set(found)) == len(found)
    # The others are in the segments, and the row is known to have changed.
    single_hashes = [(row_id, _hash_of(value)) for row_id, value in found]
    of_changed = [entry for entry in packed if changed.are(np.array([entry[0]]))[0]]
    assert {*single_hashes, *of_changed} >= {
        (row_id, _hash_of(value)) for row_id, own in values.items() for value in own
    }
    settled = {row_id: np.frombuffer(wanted[row_id], np.uint64) for row_id in sketched.keys() - single.keys()}
    assert {row_id: sketched[row_id][1] for row_id in settled} == {
        row_id: own_values.size for row_id, own_values in settled.items()
    }
    assert sorted(entry for entry in packed if entry[0] in settled) == sorted(
        (row_id, hashed) for row_id, values in settled.items() for hashed in hashes_of(values).tolist()
    )
    return len(wanted)


def _hash_of(value: int) -> int:
    return int(hashes_of(np.array([value], np.int64).view(np.uint64))[0])


def canonical_sketches(dedup: Deduplicator, name: str = "petitions") -> dict[int, NDArray[np.uint64]]:
    """Id -> the sketch of every row that takes part in pairs, as its text is now."""
    tables = dedup.database.tables
    row = tables.fingerprint.c
    with dedup.database.engine.connect() as connection:
        stored = watched_tables.find_table(connection, tables, name)
        assert stored is not None
        query = select(row.id, row.row_key).where(
            row.table_id == stored.id, row.copy_of.is_(None), row.fingerprint.is_not(None)
        )
        heads: dict[int, str] = dict(map(tuple, connection.execute(query.order_by(row.id))))
        found = _sketches_of(connection, dedup, stored, heads)
    return {row_id: np.frombuffer(sketch, np.uint64) for row_id, sketch in found.items()}


def packed_entries(connection: Connection, store: FingerprintStore) -> list[tuple[int, int]]:
    """(row id, hash) of all entries of the segments."""
    generation = segments.find_generation(connection, store)
    table = store.tables.sketch_segment.c
    stored = select(table.generation).where(table.table_id == store.table_id).distinct()
    numbers = set(connection.execute(stored).scalars())
    assert numbers <= ({generation.number} if generation else set()), "nothing of other generations is left"
    if generation is None:
        return []
    found = segments.read_pieces(connection, store, generation, 0, generation.piece_count)
    assert np.all(np.diff(found.hashes.astype(np.int64)) >= 0)
    return list(zip(found.ids.tolist(), found.hashes.tolist(), strict=True))


def _sketches_of(
    connection: Connection, dedup: Deduplicator, stored: StoredTable, heads: dict[int, str]
) -> dict[int, bytes]:
    """id -> the sketch of its text as it is now."""
    watched = stored.watched
    source = Source(dedup.database.dialect, inspect_table(connection, watched.table_name), watched)
    rows = {row.row_key: row for row in source.read_rows(connection, list(heads.values()))}
    ordered = [rows[key] for key in heads.values()]
    frames = serving_frames(connection, dedup.database.tables, stored)
    fingerprinter = Fingerprinter(replace(watched.recipe, frames=frames))
    done = fingerprinter.fingerprint([r.values for r in ordered], [r.within for r in ordered])
    return {row_id: done.sketches.bytes_of(i) for i, row_id in enumerate(heads)}
