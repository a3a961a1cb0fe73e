"""The worker and frames: when it measures them again, and what it does when a list is lost."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import delete, update

from db_dedup import Deduplicator
from db_dedup.errors import FrameListError
from db_dedup.flow.text import frames
from db_dedup.jobs.worker.table_worker import TableWorker
from tests.forms import FORM, edited, in_form, letters, stored, stored_frames, texts, watch, write
from tests.servers import Database

LOGGER = "db_dedup.jobs.worker.frame_age"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "LEAST_ROWS", 40)


def attached(database: Database, bodies: list[str], **options: str) -> Deduplicator:
    """A table of these texts, attached and scanned."""
    write(database.engine, bodies)
    dedup = watch(database.engine, **options)
    dedup.attach()
    dedup.scan()
    return dedup


def scans_of(worker: TableWorker) -> int:
    """Let the worker handle everything; return how often it scanned."""
    count = 0
    while (batch := worker.step()) is not None:
        count += batch.is_scan
    return count


def test_a_table_that_gets_enough_rows_is_scanned_once(database: Database) -> None:
    own = texts(60)
    dedup = attached(database, in_form(own[:30]))
    assert not stored_frames(dedup).has_frames
    worker = dedup.worker()
    write(database.engine, in_form(own[30:39]), first=101)
    assert scans_of(worker) == 0
    write(database.engine, in_form([own[39], edited(own[3])]), first=201)
    assert scans_of(worker) == 1
    assert stored_frames(dedup).has_frames
    assert [(pair.key_a, pair.key_b) for pair in dedup.pairs()] == [("4", "202")]
    write(database.engine, in_form(own[40:45]), first=301)
    assert scans_of(worker) == 0
    assert dedup.verify().is_right


def test_a_table_that_doubles_is_scanned_once(
    sqlite_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    own = texts(200)
    dedup = attached(sqlite_database, own[:50])
    worker = dedup.worker(10)
    write(sqlite_database.engine, in_form(own[50:98]), first=101)
    assert scans_of(worker) == 0
    with caplog.at_level(logging.INFO, LOGGER):
        write(sqlite_database.engine, in_form(own[98:100]), first=201)
        assert scans_of(worker) == 1
    assert "has 100 rows" in caplog.text
    assert stored_frames(dedup).has_frames
    assert list(dedup.pairs()) == []
    assert scans_of(dedup.worker()) == 0, "another worker knows that it is done"


def test_a_sample_that_ended_early_is_not_taken_again_and_again(sqlite_database: Database) -> None:
    """Its texts are so long that it has too few of them, and would have each time."""
    dedup = attached(sqlite_database, texts(60))
    with sqlite_database.engine.begin() as connection:
        connection.execute(update(dedup.database.tables.frame_list).values(sample_count=30))
    assert scans_of(dedup.worker()) == 0
    write(sqlite_database.engine, texts(1, seed=2), first=101)
    assert scans_of(dedup.worker()) == 0


def test_a_table_that_waits_is_not_scanned(sqlite_database: Database) -> None:
    own = texts(100)
    dedup = attached(sqlite_database, in_form(own[:30]), frame_drift="wait")
    write(sqlite_database.engine, in_form(own[30:]), first=101)
    assert scans_of(dedup.worker()) == 0
    dedup.scan()
    assert not stored_frames(dedup).has_frames
    (status,) = dedup.database.status()
    assert status.frames is not None
    assert (status.frames.has_drifted, status.frames.waits) == (True, True)
    dedup.scan(rebuild=True)
    assert stored_frames(dedup).has_frames


def test_the_worker_goes_on_by_a_new_list(sqlite_database: Database) -> None:
    own = texts(130)
    dedup = attached(sqlite_database, in_form(own[:60]))
    worker, recipe = dedup.worker(), stored(dedup).recipe
    write(sqlite_database.engine, [edited(FORM.format(text=own[2]))], first=101)
    scans_of(worker)
    with sqlite_database.engine.begin() as connection:
        connection.execute(delete(letters).where(letters.c.id > 3))
    write(sqlite_database.engine, own[60:120], first=201)
    dedup.scan()
    assert stored(dedup).recipe != recipe
    write(sqlite_database.engine, [edited(own[70])], first=301)
    scans_of(worker)
    assert ("211", "301") in {(pair.key_a, pair.key_b) for pair in dedup.pairs()}
    assert dedup.verify().is_right


def test_a_worker_without_its_list_says_what_to_do(sqlite_database: Database) -> None:
    dedup = attached(sqlite_database, in_form(texts(60)))
    with sqlite_database.engine.begin() as connection:
        connection.execute(delete(dedup.database.tables.frame_list))
    write(sqlite_database.engine, in_form(texts(1, seed=2)), first=101)
    worker = dedup.worker()
    with pytest.raises(FrameListError, match="run `db-dedup scan letters --rebuild`"):
        worker.step()
    (status,) = dedup.database.status()
    assert status.frames is not None
    assert status.frames.state == "missing"
    dedup.scan(rebuild=True)
    scans_of(worker)
    assert dedup.verify().is_right
