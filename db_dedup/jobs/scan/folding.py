"""Fold the single entries of the index of sketches into new segments.

The new segments are written beside the active ones, in short transactions; one row says which are active.
Until it changes, the index is as it was. Then the single entries are deleted, which are in the segments now.
So at each moment each entry is in at least one of the two. The lease of the table keeps scans and workers
out.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import ScanRunningError
from db_dedup.flow.candidates.segments import Entries, first_hash_of, sort_entries
from db_dedup.jobs.scan.lease import Lease, new_owner
from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.jobs.scan.sketch_index import (
    drop_other_segments,
    drop_single_entries,
    is_worth_folding,
    put_entries,
    put_sets,
    put_sizes,
)
from db_dedup.progress import NullProgress
from db_dedup.schema.tables import Tables
from db_dedup.store import segments, sketches, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.reader import Reader
from db_dedup.store.segments import Generation, new_generation
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

_PIECES_A_STEP: Final = 4_000


def entries_before_folding(connection: Connection, store: FingerprintStore) -> int:
    """Return how many more single entries make folding worth while; 0 if it is now."""
    single = sketches.count_single_entries(connection, store)
    generation = segments.find_generation(connection, store)
    total = single + (0 if generation is None else generation.entry_count)
    more = 0
    while not is_worth_folding(single + more, total + more):
        more = max(1_000, 2 * more)
    return more


def fold(engine: Engine, dialect: Dialect, tables: Tables, stored: StoredTable) -> bool:
    """Fold all single entries of a table; return False if a scan is running, or the answer has changed."""
    store = FingerprintStore.serving(dialect, tables, stored)
    owner = new_owner(folds=True)
    with dialect.write_transaction(engine) as connection:
        if watched_tables.take_lease(connection, tables, stored.id, owner) is not None:
            return False
        now = watched_tables.find_table(connection, tables, stored.watched.name)
    try:
        if now is None or now.recipe != stored.recipe:
            return False
        with Lease(engine, dialect, tables, now, owner) as lease:
            _fold(ShortTransactions(engine, dialect, lease, NullProgress(), is_unhurried=True), store)
    except ScanRunningError:
        return False
    finally:
        # Without the database the lease runs out by itself.
        with suppress(SQLAlchemyError), dialect.write_transaction(engine) as connection:
            watched_tables.drop_lease(connection, tables, owner)
    logger.info("the index of sketches of %s was folded", stored.watched.name)
    return True


def _fold(writing: ShortTransactions, store: FingerprintStore) -> None:
    with writing:
        drop_other_segments(writing, store, _number_of(writing.reader, store))
        rows = sketches.read_sketched_rows(writing.reader, store)
        generation = new_generation(int(rows.sizes.sum()))
        single = sort_entries(sketches.read_single_sketches(writing.reader, store))
        settled = rows.ids[~rows.is_single]
        for entries in _merged(writing.reader, store, generation, settled, single):
            put_entries(writing, store, generation, entries)
        put_sizes(writing, store, generation, rows.ids, rows.sizes)
        put_sets(writing, store, generation, rows.ids)
        segments.switch_generation(writing.connection(), store, generation)
        writing.pause()
        ids = rows.ids[rows.is_single]
        if ids.size:
            # Entries first: a row that changes later deletes what is left of them by the sketch beside it.
            drop_single_entries(writing, store, (int(ids.min()), int(ids.max())))
        sizes = zip(ids.tolist(), rows.sizes[rows.is_single].tolist(), strict=True)
        for connection, some in writing.parts(sizes):
            sketches.write_sizes(connection, store, some)
        drop_other_segments(writing, store, generation.number)


def _number_of(reader: Reader, store: FingerprintStore) -> int | None:
    with reader.open() as connection:
        found = segments.find_generation(connection, store)
    return None if found is None else found.number


def _merged(
    reader: Reader,
    store: FingerprintStore,
    generation: Generation,
    settled: NDArray[np.int64],
    single: Entries,
) -> Iterator[Entries]:
    """Yield the entries of whole pieces of a new generation, by ascending hash, then row.

    Args:
        reader: of our tables.
        store: the table and recipe.
        generation: the new one.
        settled: int64[n], ascending: the rows whose present entries are those in the segments.
        single: the entries of all other rows, by ascending hash.
    """
    for first in range(0, generation.piece_count, _PIECES_A_STEP):
        last = min(first + _PIECES_A_STEP, generation.piece_count)
        begin, end = (first_hash_of(piece, generation.piece_count) for piece in (first, last))
        places = np.searchsorted(single.hashes.astype(np.int64), [begin, end])
        own = slice(*places.tolist())
        packed = _settled_entries(reader, store, begin, end, settled)
        yield sort_entries(segments.joined([Entries(single.hashes[own], single.ids[own]), packed]))


def _settled_entries(
    reader: Reader, store: FingerprintStore, begin: int, end: int, settled: NDArray[np.int64]
) -> Entries:
    """Return what the segments have of some rows, from one hash up to before another."""
    with reader.open() as connection:
        former = segments.find_generation(connection, store)
        if former is None:
            return segments.NO_ENTRIES
        first, last = ((hashed * former.piece_count) >> 32 for hashed in (begin, end - 1))
        found = segments.read_pieces(connection, store, former, first, last + 1)
    chosen = (found.hashes >= begin) & (found.hashes < end) & np.isin(found.ids, settled)
    return Entries(found.hashes[chosen], found.ids[chosen])
