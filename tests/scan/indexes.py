"""The index of sketches of a watched table, and what brute force finds in its place."""

from __future__ import annotations

from random import Random

import numpy as np
from sqlalchemy import Connection, select

from db_dedup import Deduplicator
from db_dedup.engines.embedded.sharing import are_candidates, find_sharing_rows
from db_dedup.jobs.scan import folding
from db_dedup.store import sketches, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segment_lookup import IndexMemory
from db_dedup.store.watched_tables import StoredTable
from tests.bands import assert_bands_are_exact, canonical_sketches
from tests.flow.reference import meet, sketches_of


def stored_table(dedup: Deduplicator) -> tuple[StoredTable, FingerprintStore]:
    database = dedup.database
    with database.engine.connect() as connection:
        stored = watched_tables.find_table(connection, database.tables, "petitions")
    assert stored is not None
    return stored, FingerprintStore(database.dialect, database.tables, stored.id, stored.recipe or 0)


def fold(dedup: Deduplicator) -> bool:
    database = dedup.database
    return folding.fold(database.engine, database.dialect, database.tables, stored_table(dedup)[0])


def drawn(chance: Random) -> bytes:
    """A sketch of values out of few, in which many others have some; of few values, or of enough that one or
    two in common are not enough."""
    size = chance.choice([chance.randrange(1, 20), chance.randrange(30, 90)])
    values = {chance.randrange(300) * 2**55 + (chance.random() < 0.98) for _ in range(size)}
    return np.array(sorted(values), np.uint64).tobytes()


def assert_finds_what_brute_force_does(
    connection: Connection,
    store: FingerprintStore,
    stored: dict[int, bytes],
    asked: list[bytes],
    memory: IndexMemory | None = None,
) -> None:
    found = list(find_sharing_rows(connection, store, sketches_of(asked), memory=memory))
    pairs = [pair for some in found for pair in zip(some.which.tolist(), some.ids.tolist(), strict=True)]
    assert len(pairs) == len(set(pairs))
    values = {row_id: np.frombuffer(own, np.uint64).tolist() for row_id, own in stored.items()}
    wanted = {
        (i, row_id)
        for i, one in enumerate(asked)
        for row_id, other in values.items()
        if meet(np.frombuffer(one, np.uint64).tolist(), other)
    }
    assert set(pairs) >= wanted
    ids = sorted(stored)
    both = sketches_of([*asked, *(stored[row_id] for row_id in ids)])
    left = np.array([i for i, _ in pairs], np.int32)
    right = np.array([len(asked) + ids.index(row_id) for _, row_id in pairs], np.int32)
    kept = are_candidates(both, left, right, np.full(left.size, 64), 3).tolist()
    assert {pair for pair, is_kept in zip(pairs, kept, strict=True) if is_kept} == wanted


def store_drawn(dedup: Deduplicator, folded: int) -> dict[int, bytes]:
    """Give all rows other sketches, so many of them folded and the rest as single entries."""
    database, (_, store) = dedup.database, stored_table(dedup)
    with database.engine.connect() as connection:
        ids = list(connection.execute(select(store.tables.fingerprint.c.id)).scalars())
    chance = Random(7)
    stored = {row_id: drawn(chance) for row_id in ids}
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.drop_all_sketches(connection, store)
        sketches.put_sketches(connection, store, dict(list(stored.items())[:folded]))
    assert fold(dedup)
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.put_sketches(connection, store, dict(list(stored.items())[folded:]))
    return stored


def make_single(dedup: Deduplicator, count: int) -> None:
    """As if these rows had changed since the scan: their entries are single ones."""
    database, (_, store) = dedup.database, stored_table(dedup)
    some = {row_id: own.tobytes() for row_id, own in list(canonical_sketches(dedup).items())[:count]}
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.drop_sketches(connection, store, list(some))
        sketches.put_sketches(connection, store, some)
    assert_bands_are_exact(dedup)
