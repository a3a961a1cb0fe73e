"""What must hold of the band table at any time, whoever has written it."""

import numpy as np
from sqlalchemy import select

from db_dedup import Deduplicator
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.store import watched_tables


def bands_are_exact(dedup: Deduplicator) -> int:
    """Rows that take part in pairs have the bands of their text, and no others have any.

    Returns:
        How many rows have bands.
    """
    tables = dedup.database.tables
    row, band = tables.fingerprint.c, tables.band.c
    with dedup.database.engine.connect() as connection:
        stored = watched_tables.find_table(connection, tables, "petitions")
        assert stored is not None
        heads = connection.execute(
            select(row.id, row.row_key, row.sketch).where(
                row.table_id == stored.id, row.copy_of.is_(None), row.fingerprint.is_not(None)
            )
        ).all()
        others = select(row.id).where(row.table_id == stored.id, row.id.not_in([head.id for head in heads]))
        without = connection.execute(others.where(row.sketch.is_not(None))).scalars().all()
        entries = {tuple(entry) for entry in connection.execute(select(band.fingerprint_id, band.value))}
        every = set(connection.execute(select(row.id)).scalars())
        own = set(connection.execute(select(row.id).where(row.table_id == stored.id)).scalars())
    assert not without, "rows that take part in no pairs"
    assert {row_id for row_id, _ in entries} <= every, "rows that are gone"
    if not stored.watched.rule.bands:
        assert all(head.sketch is None for head in heads)
        assert not own & {row_id for row_id, _ in entries}
        return 0
    sketches = [np.frombuffer(bytes(head.sketch), np.int64).tolist() for head in heads]
    wanted = {(head.id, v) for head, sketch in zip(heads, sketches, strict=True) for v in sketch}
    assert {entry for entry in entries if entry[0] in own} == wanted
    assert [bytes(head.sketch) for head in heads] == _sketches_of_texts(dedup, [h.row_key for h in heads])
    return len(heads)


def _sketches_of_texts(dedup: Deduplicator, row_keys: list[str]) -> list[bytes]:
    with dedup.database.engine.connect() as connection:
        stored = dedup._require_stored(connection)
        watched, source = dedup._source(connection, stored.watched)
        rows = {row.row_key: row for row in source.read_rows(connection, row_keys)}
    ordered = [rows[key] for key in row_keys]
    done = Fingerprinter(watched).fingerprint([r.values for r in ordered], [r.within for r in ordered])
    return [sketch.tobytes() for sketch in done.sketches]
