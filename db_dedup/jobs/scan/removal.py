"""Remove what is stored under a recipe that does not serve, in short transactions.

Fingerprints are removed last. SQLite may give the id of a deleted row to a new one, so that no pair and no
entry of a sketch may be left that has it.
"""

from collections.abc import Iterable, Iterator

from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.jobs.scan.sketch_index import drop_other_segments, drop_single_entries
from db_dedup.progress import Progress
from db_dedup.store import frames, pairs
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segments import drop_index


def remove_recipe(writing: ShortTransactions, store: FingerprintStore, progress: Progress) -> None:
    """Remove all that is stored of a table under one recipe.

    Args:
        writing: to write in.
        store: the table and the recipe, which must not serve.
        progress: is notified of each part.
    """
    ids = remove_answer(writing, store, progress)
    progress.start("removing former fingerprints", len(ids))
    for connection, part in writing.parts(ids):
        store.delete_rows(connection, part)
    frames.drop_frames(writing.connection(), store.tables, store.table_id, {store.recipe})
    progress.finish()


def remove_answer(writing: ShortTransactions, store: FingerprintStore, progress: Progress) -> list[int]:
    """Remove the pairs and sketch entries of a recipe that does not serve; return the ids of its rows."""
    ids = sorted(store.read_ids(writing.reader).values())
    drop_index(writing.connection(), store)
    drop_other_segments(writing, store, None)
    if ids:
        progress.start("removing former sketches", len(ids))
        drop_single_entries(writing, store, (ids[0], ids[-1]))
        progress.finish()
        _remove_pairs(writing, store, progress)
    return ids


def _remove_pairs(writing: ShortTransactions, store: FingerprintStore, progress: Progress) -> None:
    counted = pairs.count_pairs_by_row(writing.reader, store)
    progress.start("removing former pairs", sum(count for _, count in counted))
    for ids, count in _weighed(counted, writing.rows):
        pairs.delete_pairs_of(writing.connection(), store, ids)
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
