"""What must hold of the band table at any time, whoever has written it."""

from dataclasses import replace

import numpy as np
from sqlalchemy import Connection, select

from db_dedup import Deduplicator
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.store import watched_tables
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
        own = select(row.id, row.sketch).where(row.table_id == stored.id, row.sketch.is_not(None))
        sketches = {row_id: bytes(sketch) for row_id, sketch in connection.execute(own)}
        others = set(connection.execute(select(row.id).where(row.table_id != stored.id)).scalars())
        entries = [tuple(entry) for entry in connection.execute(select(band.fingerprint_id, band.value))]
        wanted = _sketches_of(connection, dedup, stored, heads) if stored.watched.rule.sketches else {}
    assert sketches == wanted
    values = {row_id: np.frombuffer(sketch, np.int64).tolist() for row_id, sketch in wanted.items()}
    assert sorted(entry for entry in entries if entry[0] not in others) == sorted(
        (row_id, value) for row_id, own_values in values.items() for value in own_values
    )
    return len(wanted)


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
