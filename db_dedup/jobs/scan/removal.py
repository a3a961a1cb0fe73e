"""Remove what is stored under a recipe that does not serve, in short transactions.

Fingerprints are removed last. SQLite may give the id of a deleted row to a new one, so that no pair and no
entry of a sketch may be left that has it.
"""

from collections.abc import Iterable, Iterator

from db_dedup.jobs.scan.pieces import Pieces
from db_dedup.jobs.scan.sketch_index import drop_other_segments, drop_single_entries
from db_dedup.progress import Progress
from db_dedup.store import frames, pairs
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segments import drop_index


def remove_recipe(pieces: Pieces, store: FingerprintStore, progress: Progress) -> None:
    """Remove all that is stored of a table under one recipe.

    Args:
        pieces: to write in.
        store: the table and the recipe, which must not serve.
        progress: is notified of each part.
    """
    ids = remove_answer(pieces, store, progress)
    progress.start("removing former fingerprints", len(ids))
    for connection, part in pieces.parts(ids):
        store.delete_rows(connection, part)
    frames.drop_frames(pieces.connection(), store.tables, store.table_id, {store.recipe})
    progress.finish()


def remove_answer(pieces: Pieces, store: FingerprintStore, progress: Progress) -> list[int]:
    """Remove the pairs and sketch entries of a recipe that does not serve; return the ids of its rows."""
    ids = sorted(store.read_ids(pieces.reader).values())
    drop_index(pieces.connection(), store)
    drop_other_segments(pieces, store, None)
    if ids:
        progress.start("removing former sketches", len(ids))
        drop_single_entries(pieces, store, (ids[0], ids[-1]))
        progress.finish()
        _remove_pairs(pieces, store, progress)
    return ids


def _remove_pairs(pieces: Pieces, store: FingerprintStore, progress: Progress) -> None:
    counted = pairs.count_pairs_by_row(pieces.reader, store)
    progress.start("removing former pairs", sum(count for _, count in counted))
    for ids, count in _weighed(counted, pieces.rows):
        pairs.delete_pairs_of(pieces.connection(), store, ids)
        progress.advance(count)
    progress.finish()


def _weighed(counted: Iterable[tuple[int, int]], most: int) -> Iterator[tuple[list[int], int]]:
    """Yield ids with the sum of their counts: as many as have at most so much together, at least one."""
    ids: list[int] = []
    total = 0
    for row_id, count in counted:
        if ids and total + count > most:
            yield ids, total
            ids, total = [], 0
        ids.append(row_id)
        total += count
    if ids:
        yield ids, total
