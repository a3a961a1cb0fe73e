"""The segments of the index of sketches: scans and folds write them, and leave the old ones if they fail."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, event, func, select, text, update

from db_dedup import Deduplicator
from db_dedup.jobs.scan import folding, sketch_index
from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.sample import Sample
from db_dedup.schema.tables import Tables
from db_dedup.store import segments, single_entries, sketches, watched_tables
from db_dedup.store.watched_tables import StoredTable
from tests.bands import assert_bands_are_exact
from tests.scan.conftest import fill_database, watch
from tests.scan.indexes import fold, make_single, stored_table
from tests.servers import Database
from tests.worker.history.interruptions import InterruptedRunError, before_statement


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch_index, "_LEAST_FOLDED", 1)


def generations(dedup: Deduplicator) -> tuple[segments.Generation | None, set[int]]:
    """The generation that counts, and those of which something is stored."""
    _, store = stored_table(dedup)
    with dedup.database.engine.connect() as connection:
        stored = select(store.tables.sketch_segment.c.generation).distinct()
        return segments.find_generation(connection, store), set(connection.execute(stored).scalars())


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


def add_other_table(connection: Connection, stored: StoredTable, tables: Tables) -> int:
    """Watch one more table; return its id."""
    other = stored.watched.model_copy(update={"name": "others"})
    return watched_tables.add_table(connection, tables, other).id


@pytest.mark.parametrize("of_another", ["table", "recipe"])
def test_a_fold_leaves_the_single_entries_of_others(scanned: Deduplicator, of_another: str) -> None:
    make_single(scanned, 150)
    database, (stored, store) = scanned.database, stored_table(scanned)
    row, band = store.tables.fingerprint, store.tables.band.c
    owners = select(band.fingerprint_id).distinct().order_by(band.fingerprint_id)
    with database.dialect.write_transaction(database.engine) as connection:
        ids = list(connection.execute(owners).scalars())
        moved = ids[len(ids) // 2]
        if of_another == "table":
            place = {"table_id": add_other_table(connection, stored, store.tables)}
        else:
            place = {"recipe": store.recipe + 1}
        connection.execute(update(row).where(row.c.id == moved).values(place))
    assert fold(scanned)
    with database.engine.connect() as connection:
        assert list(connection.execute(owners).scalars()) == [moved]


def test_entries_are_looked_up_by_their_rows_where_another_table_is_watched(scanned: Deduplicator) -> None:
    """It may have rows that are not committed."""
    database, (stored, store) = scanned.database, stored_table(scanned)
    with database.dialect.write_transaction(database.engine) as connection:
        assert single_entries.are_of_one_store(connection, store)
        add_other_table(connection, stored, store.tables)
        assert store.is_alone(connection)
        assert not single_entries.are_of_one_store(connection, store)


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


def test_a_rebuild_replaces_the_sets_of_unchanged_texts(scanned: Deduplicator) -> None:
    """They may be of another release of the segmenter, whose fingerprint happens to be the same, or not."""
    database, (_, store) = scanned.database, stored_table(scanned)
    row = store.tables.fingerprint
    has_set = row.c.feature_set.is_not(None)
    query = select(row.c.row_key, row.c.feature_set, row.c.fingerprint).where(has_set).order_by(row.c.row_key)
    with database.dialect.write_transaction(database.engine) as connection:
        stored = connection.execute(query).all()
        (one, wrong, _), (other, *_) = stored[0], stored[1]
        connection.execute(update(row).where(row.c.row_key == other).values(feature_set=wrong))
        connection.execute(
            update(row).where(row.c.row_key == one).values(feature_set=stored[2][1], fingerprint=2**63 + 1)
        )
    for rebuild in (False, True):
        scanned.scan(rebuild=rebuild)
        with database.engine.connect() as connection:
            assert (set(stored) <= set(connection.execute(query))) is rebuild
    assert scanned.verify().is_right


def test_a_rebuild_gives_rows_their_first_set(scanned: Deduplicator) -> None:
    """As after an upgrade from a version that stored no sets; exact duplicates need none."""
    database, (_, store) = scanned.database, stored_table(scanned)
    row = store.tables.fingerprint
    query = select(row.c.row_key, row.c.feature_set, row.c.copy_of)
    with database.dialect.write_transaction(database.engine) as connection:
        before = {key: packed for key, packed, _ in connection.execute(query)}
        connection.execute(update(row).values(feature_set=None))
    scanned.scan(rebuild=True)
    with database.engine.connect() as connection:
        after = connection.execute(query).all()
    for key, packed, copy_of in after:
        assert copy_of is None or packed is None
        assert copy_of is not None or before[key] in (packed, None)
    assert any(packed is not None for _, packed, _ in after)


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
    begin = ShortTransactions._begin

    def beginning(self: ShortTransactions) -> Connection:
        begun.append(1)
        return begin(self)

    monkeypatch.setattr(ShortTransactions, "_begin", beginning)
    make_single(scanned, 150)
    assert fold(scanned)
    assert len(begun) > 10
    assert_bands_are_exact(scanned)
