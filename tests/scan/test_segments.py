"""The index of sketches in two levels: whatever was folded, a look-up finds what brute force does."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from sqlalchemy import Connection, event, func, select, text

from db_dedup import Deduplicator
from db_dedup.engines.embedded import sharing
from db_dedup.engines.embedded.sharing import are_proposed, find_sharing_rows
from db_dedup.flow.candidates.segments import hashes_of
from db_dedup.flow.candidates.sketch_sizes import UNKNOWN_SIZE
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.jobs.scan import folding, sketch_index
from db_dedup.jobs.scan.pieces import Pieces
from db_dedup.sample import Sample
from db_dedup.store import segment_lookup, segments, single_entries, sketch_lookup, sketches, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.segment_lookup import IndexMemory, SegmentSearch
from db_dedup.store.sketch_contents import IndexContents
from db_dedup.store.watched_tables import StoredTable
from tests.bands import assert_bands_are_exact, canonical_sketches
from tests.flow.reference import meet
from tests.scan.conftest import fill_database, watch
from tests.servers import Database
from tests.worker.history.interruptions import InterruptedRunError, before_statement

ROWS = 40


@pytest.fixture
def scanned(database: Database, sample: Sample) -> Iterator[Deduplicator]:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    yield dedup
    database.engine.dispose()


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_index, "_LEAST_FOLDED", 1)


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
    found = list(find_sharing_rows(connection, store, Sketches.of_bytes(asked), memory=memory))
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
    both = Sketches.of_bytes([*asked, *(stored[row_id] for row_id in ids)])
    left = np.array([i for i, _ in pairs], np.int32)
    right = np.array([len(asked) + ids.index(row_id) for _, row_id in pairs], np.int32)
    kept = are_proposed(both, left, right, np.full(left.size, 64), 3).tolist()
    assert {pair for pair, is_kept in zip(pairs, kept, strict=True) if is_kept} == wanted


def test_the_index_finds_what_brute_force_does_after_any_history(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 2)  # several pieces are searched at the same time
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", 50)
    database, chance = scanned.database, Random(5)
    _, store = stored_table(scanned)
    with database.engine.connect() as connection:
        ids = list(connection.execute(select(store.tables.fingerprint.c.id)).scalars())[:ROWS]
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.drop_all_sketches(connection, store)
    stored: dict[int, bytes] = {}
    memory = IndexMemory(threads=3)
    for _ in range(12):
        changed = chance.sample(ids, 6)
        new = {row_id: drawn(chance) for row_id in changed[:4]}
        with database.dialect.write_transaction(database.engine) as connection:
            sketches.drop_sketches(connection, store, changed)
            sketches.put_sketches(connection, store, new)
        stored = {row_id: own for row_id, own in stored.items() if row_id not in changed} | new
        if chance.random() < 0.5:
            assert fold(scanned)
        with database.engine.connect() as connection:
            asked = [drawn(chance) for _ in range(3)] + list(stored.values())[:3]
            assert_finds_what_brute_force_does(connection, store, stored, asked, memory)
            for one in asked:
                assert_finds_what_brute_force_does(connection, store, stored, [one], memory)
            index = IndexContents.read(connection, store)
        assert index.rows.ids.tolist() == sorted(stored)
        assert index.entry_count == index.wanted_count == sum(len(own) // 8 for own in stored.values())


@pytest.mark.parametrize("most_single", [50, 10**6])
@pytest.mark.parametrize("kept_bytes", [0, 300, 10**6])
def test_entries_of_many_rows_are_read_by_ranges_of_ids(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, most_single: int, kept_bytes: int
) -> None:
    """Whether the single entries fit into memory, and whether the pieces do."""
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", 5)
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    monkeypatch.setattr(segment_lookup, "_KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", 50)
    monkeypatch.setattr(sketch_lookup, "_SINGLE_ENTRIES_A_PIECE", most_single)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=200)
    with scanned.database.engine.connect() as connection:
        shared = sketch_lookup.find_sharing(connection, store, np.zeros(1, np.uint64), IndexMemory())
        assert len(list(shared)) >= 1
        chance = Random(8)
        assert_finds_what_brute_force_does(connection, store, stored, [drawn(chance) for _ in range(5)])


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


def test_entries_that_are_folded_between_two_ranges_are_found(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sketch_lookup, "_ENTRIES_A_PIECE", 500)
    monkeypatch.setattr(sketch_lookup, "_SINGLE_ENTRIES_A_PIECE", 500)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=10)
    sketched = Sketches.of_bytes([*stored.values()])
    owners = np.repeat(np.array([*stored], np.int64), sketched.counts)
    found: set[tuple[int, int]] = set()
    with scanned.database.engine.connect() as connection:
        for number, some in enumerate(
            sketch_lookup.find_sharing(connection, store, sketched.values, IndexMemory())
        ):
            rows = some.ids[some.postings.rows].tolist()
            found.update(zip(some.postings.entry_hashes.tolist(), rows, strict=True))
            if number == 0:
                assert fold(scanned)
    assert number > 1
    assert found == set(zip(hashes_of(sketched.values).tolist(), owners.tolist(), strict=True))


def test_a_search_that_ended_early_goes_on_in_another_generation(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pieces that were kept are of the former one."""
    monkeypatch.setattr(segment_lookup, "_PIECES_A_QUERY", 1)
    _, store = stored_table(scanned)
    sketched = Sketches.of_bytes([*store_drawn(scanned, folded=150).values()])
    hashes = np.unique(hashes_of(sketched.values))
    with scanned.database.engine.connect() as connection:
        search = SegmentSearch(connection, store, hashes, IndexMemory(), keeps=True)
        before = search.find(most=1)
        connection.rollback()  # the next statement sees what is committed by then
        assert fold(scanned)
        after = search.find()
    assert before.generation != after.generation
    assert after.postings.rows.size == sketched.values.size


@pytest.mark.parametrize("at_once", [5, 10**6])
def test_too_many_single_entries_are_not_read(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", at_once)
    _, store = stored_table(scanned)
    sketched = Sketches.of_bytes([*store_drawn(scanned, folded=0).values()])
    wanted, count = np.unique(sketched.values).view(np.int64).tolist(), sketched.values.size
    with scanned.database.engine.connect() as connection:
        assert single_entries.read_entries(connection, store, wanted, None, count) is None
        found = single_entries.read_entries(connection, store, wanted, None, count + 1)
    assert found is not None
    assert found.ids.size == count


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize("most_bytes", [4, 11, 13])
@pytest.mark.parametrize("at_once", [1, 5])
def test_ids_that_the_server_cuts_are_read_row_by_row(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch, most_bytes: int, at_once: int
) -> None:
    """Wherever it cuts: between two ids, or in the last one, so that their number is right."""
    monkeypatch.setattr(single_entries, "_VALUES_A_STATEMENT", at_once)
    _, store = stored_table(scanned)
    stored = store_drawn(scanned, folded=0)
    values = np.unique(Sketches.of_bytes([*stored.values()]).values).view(np.int64).tolist()
    found = []
    with scanned.database.engine.connect() as connection:
        for most in (10**6, most_bytes):
            connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {most}")
            entries = single_entries.read_entries(connection, store, values, None, None)
            assert entries is not None
            found.append(sorted(zip(entries.hashes.tolist(), entries.ids.tolist(), strict=True)))
    assert found[0] == found[1]
    assert len(found[0]) == sum(len(own) // 8 for own in stored.values())


def test_a_row_with_more_pairs_than_a_piece_has_all_of_them(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_PAIRS_A_PIECE", 2)
    _, store = stored_table(scanned)
    stored = {row_id: own.tobytes() for row_id, own in canonical_sketches(scanned).items()}
    asked = [own for own in list(stored.values())[:3] for _ in range(4)]
    with scanned.database.engine.connect() as connection:
        assert_finds_what_brute_force_does(connection, store, stored, asked)


def test_sizes_of_rows_that_have_not_changed_are_known_without_their_rows(scanned: Deduplicator) -> None:
    _, store = stored_table(scanned)
    changed = list(canonical_sketches(scanned))[:10]
    make_single(scanned, len(changed))
    own = canonical_sketches(scanned)
    with scanned.database.engine.connect() as connection:
        found = sketch_lookup.find_sharing(connection, store, np.concatenate([*own.values()]), IndexMemory())
        sizes = {i: size for s in found for i, size in zip(s.ids.tolist(), s.counts.tolist(), strict=True)}
    known = {i: min(values.size, 255) for i, values in own.items() if i not in changed}
    assert sizes == known | dict.fromkeys(changed, UNKNOWN_SIZE)


def generations(dedup: Deduplicator) -> tuple[segments.Generation | None, set[int]]:
    """The generation that counts, and those of which something is stored."""
    _, store = stored_table(dedup)
    with dedup.database.engine.connect() as connection:
        stored = select(store.tables.sketch_segment.c.generation).distinct()
        return segments.find_generation(connection, store), set(connection.execute(stored).scalars())


def make_single(dedup: Deduplicator, count: int) -> None:
    """As if these rows had changed since the scan: their entries are single ones."""
    database, (_, store) = dedup.database, stored_table(dedup)
    some = {row_id: own.tobytes() for row_id, own in list(canonical_sketches(dedup).items())[:count]}
    with database.dialect.write_transaction(database.engine) as connection:
        sketches.drop_sketches(connection, store, list(some))
        sketches.put_sketches(connection, store, some)
    assert_bands_are_exact(dedup)


def single_count(dedup: Deduplicator) -> int:
    _, store = stored_table(dedup)
    with dedup.database.engine.connect() as connection:
        return sketches.count_single_entries(connection, store)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_fold_that_is_interrupted_leaves_a_complete_index(scanned: Deduplicator, share: float) -> None:
    """Until the switch the old generation counts, then the new one; the next fold ends what was begun."""
    engine = scanned.database.engine
    make_single(scanned, 150)
    before = single_count(scanned)
    count = count_statements(scanned)
    make_single(scanned, 150)

    def interrupt(_: Connection) -> None:
        raise InterruptedRunError

    with before_statement(engine, int(count * share), interrupt), pytest.raises(InterruptedRunError):
        fold(scanned)
    assert scanned.verify().is_right
    assert single_count(scanned) <= before
    assert fold(scanned)
    assert single_count(scanned) == 0
    generation, stored = generations(scanned)
    assert generation is not None
    assert stored == {generation.number}
    assert_bands_are_exact(scanned)


def count_statements(dedup: Deduplicator) -> int:
    """How many statements a fold takes."""
    count = [0]

    def note(*_: object) -> None:
        count[0] += 1

    event.listen(dedup.database.engine, "before_cursor_execute", note)
    assert fold(dedup)
    event.remove(dedup.database.engine, "before_cursor_execute", note)
    return count[0]


def test_a_fold_leaves_a_running_scan_alone(scanned: Deduplicator) -> None:
    database, (stored, _) = scanned.database, stored_table(scanned)
    with database.dialect.write_transaction(database.engine) as connection:
        assert watched_tables.take_lease(connection, database.tables, stored.id, "another") is None
    assert not fold(scanned)
    with database.engine.connect() as connection:
        assert watched_tables.lease_holder(connection, database.tables, "petitions") == "another"


def test_a_scan_that_fails_leaves_the_segments_that_count(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild writes a new generation in the transaction of the switch: a rollback leaves the old one."""
    before = generations(scanned)

    def fail(*_: object) -> None:
        raise InterruptedRunError

    monkeypatch.setattr("db_dedup.jobs.scan.full_scan.mark_stale", fail)
    with pytest.raises(InterruptedRunError):
        scanned.scan(rebuild=True)
    monkeypatch.undo()
    assert generations(scanned) == before
    assert_bands_are_exact(scanned)
    scanned.scan(rebuild=True)
    generation, stored = generations(scanned)
    assert generation is not None
    assert stored == {generation.number} != before[1]
    assert_bands_are_exact(scanned)


def test_a_rebuild_of_a_small_table_writes_segments(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries never move from segments to single entries: a look-up reads the single entries first."""
    monkeypatch.setattr(sketch_index, "_LEAST_FOLDED", 10**6)
    make_single(scanned, 10)
    scanned.scan(rebuild=True)
    generation, stored = generations(scanned)
    assert generation is not None
    assert stored == {generation.number}
    assert single_count(scanned) == 0
    assert_bands_are_exact(scanned)


def test_segments_of_a_former_recipe_without_rows_are_removed(
    sqlite_database: Database, sample: Sample
) -> None:
    fill_database(sqlite_database.engine, sample)
    watch(sqlite_database.engine).scan()
    with sqlite_database.engine.begin() as connection:
        connection.execute(text("DELETE FROM petitions"))
    watch(sqlite_database.engine).scan()
    dedup = watch(sqlite_database.engine, segmenter="chars:2")
    dedup.scan()
    _, store = stored_table(dedup)
    with dedup.database.engine.connect() as connection:
        for table in (store.tables.sketch_index, store.tables.sketch_segment):
            assert set(connection.execute(select(table.c.recipe)).scalars()) <= {store.recipe}


def test_a_rescan_folds_what_an_older_version_stored(scanned: Deduplicator) -> None:
    """An older version had single entries alone: they count until a scan or the worker folds them."""
    make_single(scanned, 10**6)
    _, store = stored_table(scanned)
    database = scanned.database
    with database.dialect.write_transaction(database.engine) as connection:
        segments.drop_index(connection, store)
        segments.drop_segments(connection, store, None, 10**6)
    assert scanned.verify().is_right
    scanned.scan()
    assert single_count(scanned) == 0
    with database.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(store.tables.band)).scalar_one() == 0
    assert_bands_are_exact(scanned)


def test_a_fold_reads_and_writes_in_short_transactions(
    scanned: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "_PIECES_A_STEP", 3)
    begun = []
    begin = Pieces._begin

    def beginning(self: Pieces) -> Connection:
        begun.append(1)
        return begin(self)

    monkeypatch.setattr(Pieces, "_begin", beginning)
    make_single(scanned, 150)
    assert fold(scanned)
    assert len(begun) > 10
    assert_bands_are_exact(scanned)
