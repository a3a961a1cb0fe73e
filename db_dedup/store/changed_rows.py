"""The bits beside the segments that tell which rows have changed since (`flow.candidates.changed_rows`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete

from db_dedup.flow.candidates.changed_rows import ChangedRows
from db_dedup.store import segments
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segment_lookup import read_changed_rows
from db_dedup.store.segments import Generation


def mark_changed(
    connection: Connection, store: FingerprintStore, generation: Generation, ids: Sequence[int]
) -> None:
    """Note that rows have changed since the segments were written.

    Args:
        connection: in a transaction that holds the lock of the table, so that no other one marks rows.
        store: whose rows.
        generation: the active one.
        ids: of the rows.
    """
    if not ids:
        return
    rows = np.array(ids, np.int64)
    parts = list(read_changed_rows(connection, store, generation, rows).with_rows(rows))
    table = store.tables.sketch_segment
    of_pieces = table.c.generation == generation.number, table.c.piece.in_([part.piece for part in parts])
    connection.execute(delete(table).where(segments.is_of_segments(store), *of_pieces))
    segments.put_parts(connection, store, generation, parts)


def read_changed(connection: Connection, store: FingerprintStore, ids: NDArray[np.int64]) -> ChangedRows:
    """Return which of some rows have changed since the active segments were written."""
    generation = segments.find_generation(connection, store)
    return ChangedRows({}) if generation is None else read_changed_rows(connection, store, generation, ids)
