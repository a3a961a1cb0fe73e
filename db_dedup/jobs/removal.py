"""Remove what a recipe left that does not serve, in pieces: its answer alone, or its fingerprints, too.

Fingerprints go last. In SQLite the id of a deleted row may be given out again, and no pair or band entry may
be left that has it.
"""

from collections.abc import Iterable, Iterator, Sequence

from db_dedup.jobs.pieces import Pieces
from db_dedup.progress import Progress
from db_dedup.store import bands, pairs
from db_dedup.store.fingerprints import FingerprintStore


def remove_recipe(pieces: Pieces, store: FingerprintStore, progress: Progress) -> None:
    """Remove all that is stored of a table under one recipe.

    Args:
        pieces: to write in.
        store: the table and the recipe, which must not serve.
        progress: told how far it is.
    """
    ids = remove_answer(pieces, store, progress)
    progress.start("removing former fingerprints", len(ids))
    for connection, part in pieces.parts(ids):
        store.delete_rows(connection, part)
    progress.finish()


def remove_answer(pieces: Pieces, store: FingerprintStore, progress: Progress) -> list[int]:
    """Remove the pairs and the band entries of a recipe that does not serve. Gives the ids of its rows."""
    ids = sorted(store.read_ids(pieces.reader).values())
    if ids:
        _remove_entries(pieces, store, progress, ids)
        _remove_pairs(pieces, store, progress)
    return ids


def _remove_entries(pieces: Pieces, store: FingerprintStore, progress: Progress, ids: Sequence[int]) -> None:
    """Walk through the band table, which is sorted by value: of a row's entries each is elsewhere, and to
    delete row by row would write the whole table many times."""
    progress.start("removing former sketches", len(ids))
    between = ids[0], ids[-1]
    begin: bands.Entry | None = bands.FIRST_ENTRY
    done = 0
    while begin is not None:
        connection = pieces.connection()
        end = bands.entry_after(connection, store, begin, pieces.rows)
        bands.drop_entries_between(connection, store, begin, end, between)
        now_done = len(ids) if end is None else int(len(ids) * end.share)
        progress.advance(now_done - done)
        begin, done = end, now_done
    progress.finish()


def _remove_pairs(pieces: Pieces, store: FingerprintStore, progress: Progress) -> None:
    counted = pairs.count_pairs_by_row(pieces.reader, store)
    progress.start("removing former pairs", sum(count for _, count in counted))
    for ids, count in _weighed(counted, pieces.rows):
        pairs.delete_pairs_of(pieces.connection(), store, ids)
        progress.advance(count)
    progress.finish()


def _weighed(counted: Iterable[tuple[int, int]], most: int) -> Iterator[tuple[list[int], int]]:
    """Ids with the sum of their counts: as many as have at most so much together, at least one."""
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
