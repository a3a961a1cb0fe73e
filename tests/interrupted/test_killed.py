"""A scan that is killed in the middle: nothing is lost, nothing is shown too early, little is done again."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import delete, select, text, update

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.errors import NotScannedError, ScanRunningError
from db_dedup.jobs.scan.full_scan import FullScan
from db_dedup.sample import Sample
from db_dedup.schema.indexes import missing_indexes
from db_dedup.store.scans import DIED
from tests.interrupted.conftest import (
    at_points,
    by_settings,
    change_recipe,
    dump,
    fresh_answer,
    stopped_at,
    stored_keys,
)
from tests.scan.conftest import answer
from tests.servers import Database

ALL_INDEXES = {"block_1", "block_2", "block_3", "block_4", "digest", "copy_of", "group", "group_size"}


def kill_at(point: str, dedup: Deduplicator) -> None:
    """Kill a scan there; it is told as at work while its lease lasts."""
    with stopped_at(point) as scan:
        scan.send(signal.SIGKILL)
        assert scan.end() == (-signal.SIGKILL, "")
        with pytest.raises(ScanRunningError, match=f"{socket.gethostname()}:{scan.process.pid}:"):
            dedup.scan()
    assert status_of(dedup) == ("running", None)


def nothing_is_left_over(dedup: Deduplicator) -> bool:
    """Every stored fingerprint, pair and entry is of the recipe that serves."""
    tables = dedup.database.tables
    row, watched = tables.fingerprint, tables.watched_table
    segment, index = tables.sketch_segment.c, tables.sketch_index.c
    with dedup.database.engine.connect() as connection:
        served = select(row.c.id, row.c.sketch).join(watched, watched.c.recipe == row.c.recipe)
        sketches = {row_id: sketch for row_id, sketch in connection.execute(served)}  # noqa: C416
        generations = connection.execute(select(index.table_id, index.recipe, index.generation)).all()
        stored = select(segment.table_id, segment.recipe, segment.generation).distinct()
        assert connection.execute(stored).all() == generations
        pairs = connection.execute(select(tables.pair.c.id_a, tables.pair.c.id_b)).all()
        owners = Counter(connection.execute(select(tables.band.c.fingerprint_id)).scalars())
        ids = set(connection.execute(select(row.c.id)).scalars())
    wanted = {row_id: len(sketch) // 8 for row_id, sketch in sketches.items() if sketch}
    return ids == sketches.keys() and owners == wanted and ids.issuperset(i for pair in pairs for i in pair)


def indexes_of(dedup: Deduplicator) -> set[str]:
    """The indexes of the fingerprint table that are there; a first scan makes them after its rows."""
    row = dedup.database.tables.fingerprint
    with dedup.database.engine.connect() as connection:
        gone = missing_indexes(connection, dedup.database.tables)
    return {str(index.name).split("fingerprint_")[-1] for index in row.indexes.difference(gone)}


def status_of(dedup: Deduplicator) -> tuple[str | None, str | None]:
    (entry,) = dedup.database.status()
    return entry.last_scan_state, entry.last_scan_error


@at_points(
    "measuring the frames",
    "reading",
    "writing a page",
    "between pages",
    "matching",
    "linking copies",
    "writing the pairs",
    "writing the entries",
    "making the indexes",
    "switching",
    on_servers=("writing a page", "between pages", "making the indexes", "switching"),
)
def test_a_first_scan_is_taken_up_where_it_was_killed(
    petitions: Database, sample: Sample, point: str, let_leases_end: Callable[[], None]
) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    kill_at(point, dedup)
    if point in ("writing a page", "between pages"):
        assert indexes_of(dedup) == set()
    if point in ("matching", "linking copies"):
        assert indexes_of(dedup).isdisjoint(("group", "group_size")), "made after the groups are written"
    with pytest.raises(NotScannedError):
        dedup.groups()
    kept = stored_keys(dedup, 1)
    wanted = {"measuring the frames": 0, "reading": 20, "writing a page": 20, "between pages": 40}
    assert len(kept) == wanted.get(point, 90)
    let_leases_end()
    assert status_of(dedup) == ("failed", DIED)
    report = dedup.scan()
    assert indexes_of(dedup) == ALL_INDEXES
    assert answer(dedup) == fresh_answer(dedup)
    assert report.segmented == 90 - len(kept)
    assert stored_keys(dedup, 1) == {str(p.id) for p in sample.petitions}
    assert status_of(dedup) == ("finished", None)


@at_points(
    "reading",
    "between pages",
    "matching",
    "writing the pairs",
    "writing the entries",
    "switching",
    on_servers=("between pages", "writing the pairs", "switching"),
)
def test_a_changed_recipe_is_taken_up_where_it_was_killed(
    petitions: Database, point: str, let_leases_end: Callable[[], None]
) -> None:
    before = by_settings(petitions)
    before.upgrade()
    before.scan()
    shown, stored = answer(before), dump(before, "scan")
    dedup = change_recipe(petitions)
    kill_at(point, dedup)
    assert indexes_of(dedup) == ALL_INDEXES, "an answer is shown"
    assert answer(before) == shown
    kept = stored_keys(dedup, 2)
    old_rows = [row for row in dump(before)["fingerprint"] if row[2] == 1]
    assert old_rows == stored["fingerprint"]
    let_leases_end()
    report = dedup.scan()
    assert answer(dedup) == fresh_answer(dedup)
    assert report.segmented == 90 - len(kept)
    assert stored_keys(dedup, 1) == set()
    assert dedup.verify().is_right
    assert nothing_is_left_over(dedup)


@at_points(
    "switched",
    "removing the entries",
    "between removals",
    "removing the fingerprints",
    on_servers=("removing the entries", "removing the fingerprints"),
)
def test_what_a_killed_removal_leaves_is_never_seen_and_goes_with_the_next_scan(
    petitions: Database, point: str, let_leases_end: Callable[[], None]
) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    dedup = change_recipe(petitions)
    with stopped_at(point) as scan:
        scan.send(signal.SIGKILL)
        scan.end()
    assert status_of(dedup) == ("finished", None)
    assert stored_keys(dedup, 1)
    assert answer(dedup) == fresh_answer(dedup)
    assert dedup.verify().is_right
    let_leases_end()
    assert dedup.scan().pairs_gained == 0
    assert stored_keys(dedup, 1) == set()
    assert nothing_is_left_over(dedup)
    assert answer(dedup) == fresh_answer(dedup)


@at_points("reading", "matching", "switching", on_servers=("matching", "switching"))
def test_a_killed_rescan_has_changed_nothing(
    petitions: Database, sample: Sample, point: str, let_leases_end: Callable[[], None]
) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    shown, stored = answer(dedup), dump(dedup, "scan")
    ids = sorted(p.id for p in sample.petitions)
    with petitions.engine.begin() as connection:
        connection.execute(delete(petitions_table).where(petitions_table.c.id.in_(ids[::7])))
        connection.execute(
            update(petitions_table)
            .where(petitions_table.c.id.in_(ids[1::7]))
            .values(content="换成了别的内容")
        )
    kill_at(point, dedup)
    assert answer(dedup) == shown
    assert dump(dedup, "scan") == stored
    let_leases_end()
    dedup.scan()
    assert answer(dedup) == fresh_answer(dedup)
    assert answer(dedup) != shown


def test_killed_right_after_the_switch_the_answer_is_the_new_one(petitions: Database) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    with stopped_at("switched") as scan:
        scan.send(signal.SIGKILL)
        scan.end()
    assert status_of(dedup) == ("finished", None)
    assert answer(dedup) == fresh_answer(dedup)
    dedup.scan()  # nobody holds the table; the view of its rows is made


def test_killed_after_a_switch_to_another_key_no_row_is_shown_by_the_former(
    petitions: Database, monkeypatch: pytest.MonkeyPatch, let_leases_end: Callable[[], None]
) -> None:
    """The view of the table's rows is joined by the former key until it is made again."""
    with petitions.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE letters (id INTEGER PRIMARY KEY, number INTEGER, content TEXT)")
        )
        connection.execute(
            text("INSERT INTO letters SELECT id, 90 - id, content FROM petitions WHERE id < 90")
        )
    by_settings(petitions).upgrade()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def watched(key: str) -> Deduplicator:
        return Deduplicator(petitions.engine, "letters", {"content": 1}, key=[key])

    def shown(key: str) -> set[tuple[str, str]]:
        schema = "dedup." if petitions.name == "postgresql" else "dedup_"
        with petitions.engine.connect() as connection:
            rows = connection.execute(text(f"SELECT {key}, group_id FROM {schema}duplicates_of_letters"))
            return {(str(row[0]), row[1]) for row in rows}

    def members(dedup: Deduplicator) -> set[tuple[str, str]]:
        return {(key, group.group_id) for group in dedup.groups() for key in dedup.members(group.group_id)}

    watched("id").scan()
    assert shown("id") == members(watched("id"))
    with monkeypatch.context() as patch:
        patch.setattr(FullScan, "_remove_former", interrupt)
        with pytest.raises(KeyboardInterrupt):
            watched("number").scan()
    assert shown("number") == set() != members(watched("number"))
    assert any("duplicates_of_letters" in fault for fault in watched("number").verify().drift)
    let_leases_end()
    watched("number").scan()
    assert shown("number") == members(watched("number"))
    with petitions.engine.begin() as connection:  # as where somebody has made the view by hand
        connection.execute(update(watched("number").database.tables.watched_table).values(view_digest=None))
    assert shown("number") == members(watched("number"))


def test_another_recipe_takes_nothing_from_a_killed_one(
    petitions: Database, let_leases_end: Callable[[], None]
) -> None:
    """Both recipes give every row the same digest, and other fingerprints."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    kill_at("matching", dedup)
    digests = {row[3]: row[6] for row in dump(dedup)["fingerprint"]}
    let_leases_end()
    other = change_recipe(petitions)
    report = other.scan()
    assert report.segmented == 90
    assert {row[3]: row[6] for row in dump(other)["fingerprint"]} == digests
    assert answer(other) == fresh_answer(other)
    assert other.verify().is_right


def test_a_killed_scan_leaves_no_process_behind(sqlite_petitions: Database) -> None:
    by_settings(sqlite_petitions).upgrade()
    with stopped_at("matching", with_a_process=True) as scan:
        os.kill(scan.process.pid, signal.SIGKILL)
        # Its standard error ends when the last process that holds it does.
        assert scan.end() == (-signal.SIGKILL, "")
