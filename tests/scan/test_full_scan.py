"""A full scan gives exactly the answer of brute force, the same in every database."""

from datetime import datetime

import pytest
from sqlalchemy import delete, insert, select, update

from db_dedup import Deduplicator, DuplicatePair
from db_dedup.cli.demo import petitions
from db_dedup.config import watched_table
from db_dedup.engines.embedded import engine as embedded
from db_dedup.errors import ScanRunningError
from db_dedup.sample import Petition, Sample
from db_dedup.schema.views import DropView
from db_dedup.store import watched_tables
from db_dedup.store.answers import view
from tests.scan.conftest import COLUMNS, answer, fill_database, stored_frames, watch
from tests.scan.reference import brute_force, components
from tests.servers import Database


def expected(sample: Sample, **options: object) -> list[DuplicatePair]:
    return brute_force(sample.petitions, watched_table("petitions", {"columns": COLUMNS, **options}))


@pytest.mark.parametrize("preset", ["strict", "balanced"])
def test_scan_equals_brute_force(database: Database, sample: Sample, preset: str) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine, preset=preset)
    report = dedup.scan()
    found, groups, members = answer(dedup)
    wanted = expected(sample, preset=preset)
    assert found == wanted
    assert len(found) > 50
    received = [str(p.id) for p in sorted(sample.petitions, key=lambda p: (p.created_at, p.id))]
    assert {group: set(rows) for group, rows in members} == components(wanted, received)
    assert (report.rows, report.pairs + report.copies, report.groups) == (400, len(found), len(groups))


def test_loose_groups_are_flagged(sqlite_database: Database, sample: Sample) -> None:
    fill_database(sqlite_database.engine, sample)
    by_words = {"radius": 11, "similarity": "word_jaccard", "threshold": 0.6, "sketches": False}
    dedup = watch(sqlite_database.engine, frames=False, **by_words)
    dedup.scan()
    found, groups, members = answer(dedup)
    linked = {(p.key_a, p.key_b) for p in found}
    copies = {p.key_b for p in found if p.distance == 0 and p.similarity == 1.0}
    rows_of = dict(members)
    for group in groups:
        others = set(rows_of[group.group_id]) - copies - {group.group_id}
        assert group.is_loose == any((group.group_id, other) not in linked for other in others)
    assert {g.is_loose for g in groups} == {True, False}


def test_a_second_scan_changes_nothing(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    tables = dedup.database.tables
    queries = [select(*t.c).order_by(*t.primary_key) for t in (tables.fingerprint, tables.pair)]
    with database.engine.connect() as connection:
        before = [connection.execute(query).all() for query in queries]
    dedup.scan()
    with database.engine.connect() as connection:
        assert [connection.execute(query).all() for query in queries] == before


def test_a_rescan_equals_a_fresh_scan(database: Database, sample: Sample) -> None:
    """After inserts, updates, key changes and deletes; pairs that stay keep the time they were found."""
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    found_at = read_found_at(dedup)
    with database.engine.begin() as connection:
        ids = sorted(p.id for p in sample.petitions)
        rows = {p.id: p for p in sample.petitions}
        connection.execute(delete(petitions).where(petitions.c.id.in_(ids[::9])))
        same = {"title": rows[ids[5]].title, "content": rows[ids[5]].content}
        for number, values in ((1, {"id": 99_001}), (2, {"content": "改成了完全不同的内容"}), (4, same)):
            connection.execute(update(petitions).where(petitions.c.id == ids[number]).values(values))
        names = petitions.columns.keys()
        copy = {name: getattr(rows[ids[7]], name) for name in names} | {"id": 99_002}
        connection.execute(insert(petitions), [copy])
        now = [Petition(**row) for row in connection.execute(select(petitions)).mappings()]
    dedup.scan()
    found, _, _ = answer(dedup)
    watched = watched_table("petitions", {"columns": COLUMNS})
    assert found == brute_force(now, watched, stored_frames(dedup))
    kept = {key: at for key, at in read_found_at(dedup).items() if key in found_at}
    assert len(kept) > 50
    assert kept == {key: found_at[key] for key in kept}


def read_found_at(dedup: Deduplicator) -> dict[tuple[str, str], object]:
    pairs = view(dedup.database.tables, "duplicate_pairs", "key_a", "key_b", "found_at")
    with dedup.database.engine.connect() as connection:
        rows = connection.execute(select(pairs.c.key_a, pairs.c.key_b, pairs.c.found_at))
        return {(a, b): at for a, b, at in rows}


def test_a_new_recipe_replaces_the_old_one_whole(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    watch(database.engine, preset="strict").scan()
    dedup = watch(database.engine, preset="balanced", segmenter="chars:2")
    dedup.scan()
    found, _, _ = answer(dedup)
    assert found == expected(sample, segmenter="chars:2")
    tables = dedup.database.tables
    with database.engine.connect() as connection:
        recipes = connection.execute(select(tables.fingerprint.c.recipe).distinct()).scalars().all()
    assert recipes == [2]


def test_within_and_where_limit_the_pairs(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine, within="region", where="region <> '没有这样的地方: %' OR region IS NULL")
    dedup.scan()
    region = {str(p.id): p.region for p in sample.petitions}
    wanted = [p for p in expected(sample) if region[p.key_a] == region[p.key_b]]
    found, _, _ = answer(dedup)
    assert {(p.key_a, p.key_b) for p in found if p.distance} == {
        (p.key_a, p.key_b) for p in wanted if p.distance
    }
    everywhere = {p.region for p in sample.petitions if p.region}
    one = min(everywhere)
    other = watch(database.engine, where=f"region = '{one}'")
    assert other.scan().rows == sum(p.region == one for p in sample.petitions)


def test_a_group_past_the_limit_is_abridged(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine, abridge_above=3)
    dedup.scan()
    found, groups, members = answer(dedup)
    wanted = expected(sample)
    received = [str(p.id) for p in sorted(sample.petitions, key=lambda p: (p.created_at, p.id))]
    assert {group: set(rows) for group, rows in members} == components(wanted, received)
    assert set(found) < set(wanted)
    assert any(g.is_abridged for g in groups)
    assert sorted(dedup.pairs(expand=True), key=lambda p: (p.key_a, p.key_b)) == sorted(
        watch_unabridged(database), key=lambda p: (p.key_a, p.key_b)
    )


def watch_unabridged(database: Database) -> list[DuplicatePair]:
    dedup = watch(database.engine)
    dedup.scan()
    return list(dedup.pairs(expand=True))


def test_a_scan_at_work_refuses_a_second_one(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    tables = dedup.database.tables
    with dedup.database.dialect.write_transaction(database.engine) as connection:
        stored = watched_tables.find_table(connection, tables, "petitions")
        assert stored is not None
        assert watched_tables.take_lease(connection, tables, stored.id, "elsewhere:1") is None
    with pytest.raises(ScanRunningError, match="elsewhere:1"):
        dedup.scan()
    with dedup.database.dialect.write_transaction(database.engine) as connection:
        watched_tables.drop_lease(connection, tables, "elsewhere:1")
    assert dedup.scan().rows == 400


def test_nothing_to_scan(database: Database) -> None:
    with database.engine.begin() as connection:
        petitions.create(connection)
    dedup = watch(database.engine)
    report = dedup.scan()
    assert (report.rows, report.pairs, report.groups) == (0, 0, 0)
    assert answer(dedup) == ([], [], [])
    with database.engine.begin() as connection:
        connection.execute(insert(petitions), [blank_row(1), blank_row(2)])
    report = dedup.scan()
    assert (report.rows, report.too_little_text, report.groups) == (2, 2, 0)


def blank_row(number: int) -> dict[str, object]:
    return {"id": number, "title": "", "content": " \u3000！！", "created_at": datetime(2024, 1, number)}


def test_a_lost_view_is_made_again(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    namespace = dedup.database.namespace
    with dedup.database.dialect.write_transaction(database.engine) as connection:
        connection.execute(DropView(namespace.name("duplicates_of_petitions"), namespace.schema))
    dedup.scan()
    own = view(dedup.database.tables, "duplicates_of_petitions", "group_id")
    with database.engine.connect() as connection:
        assert connection.execute(select(own.c.group_id)).all()


def test_down_to_nothing_and_up_again(database: Database, sample: Sample) -> None:
    fill_database(database.engine, sample)
    dedup = watch(database.engine)
    dedup.scan()
    before = answer(dedup)
    dedup.database.downgrade("base")
    assert dedup.database.installed_names() == []
    dedup = watch(database.engine)
    dedup.scan()
    assert answer(dedup) == before


def test_a_large_table_is_fingerprinted_by_another_process(
    sqlite_database: Database, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_database(sqlite_database.engine, sample)
    monkeypatch.setattr(embedded, "_ROWS_WORTH_A_PROCESS", 1)
    dedup = watch(sqlite_database.engine)
    dedup.scan()
    assert answer(dedup)[0] == expected(sample)
