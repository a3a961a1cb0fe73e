"""Full scans that the worker must make: errors in them, another scan that runs, the end of the program."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator
from db_dedup.errors import DedupError
from db_dedup.jobs.stopping import StoppableProgress
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.scheduled_scans import ScheduledScans, interval_trigger
from db_dedup.progress import NullProgress
from db_dedup.store import watched_tables
from tests.servers import Database
from tests.worker.conftest import POISON, is_right, table_id, write
from tests.worker.watched import Watched

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def require_scan(watched: Watched) -> None:
    watched.dedup.detach()
    watched.dedup.attach()


def test_an_error_that_is_not_ours_is_a_fault_of_its_table(
    database: Database, poisoned: pytest.MonkeyPatch
) -> None:
    """Such as one of a segmenter from an entry point."""
    broken, sound = (Watched.make(database.engine, number) for number in (0, 2))
    with database.engine.begin() as connection:
        connection.execute(text(f"INSERT INTO letters_0 (id, body) VALUES (1, '{POISON}')"))
    require_scan(broken)
    write(sound, (0, 3))
    workers = [each.dedup.worker() for each in (broken, sound)]
    with pytest.raises(DedupError) as caught:
        ChangeWorker(workers).run(threading.Event(), drain=True)
    assert "the scan of 'letters_0' failed with ValueError" in str(caught.value)
    assert "cannot be read" not in str(caught.value)
    assert is_right(sound)
    poisoned.undo()


def test_a_schedule_tells_of_an_error_that_is_not_ours(
    watched: Watched, poisoned: pytest.MonkeyPatch
) -> None:
    watched.dedup.detach()
    write(watched, (0,))
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(watched.letters.insert().values(id=1, body=POISON))
    told, stop = list[str](), threading.Event()

    def on_error(_: str, error: DedupError) -> None:
        told.append(str(error))
        stop.set()

    # Without the error's report nothing would end it.
    timer = threading.Timer(60, stop.set)
    timer.start()
    scans = ScheduledScans({"letters_0": watched.dedup.scan}, interval_trigger("1h"), print, on_error)
    scans.run(stop, at_once=["letters_0"])
    timer.cancel()
    assert told == ["the scan of 'letters_0' failed with ValueError: `db-dedup scan letters_0` shows where"]
    poisoned.undo()


def test_a_table_is_not_drained_before_its_required_scan(watched: Watched) -> None:
    """Another scan runs, which began before the triggers were there: it may have missed changes."""
    database = watched.dedup.database
    require_scan(watched)
    with database.dialect.write_transaction(database.engine) as connection:
        watched_tables.take_lease(connection, database.tables, table_id(watched), "a scan")
    worker = watched.dedup.worker()
    assert worker.step() is None
    assert not worker.is_drained()
    with database.dialect.write_transaction(database.engine) as connection:
        watched_tables.drop_lease(connection, database.tables, "a scan")
    batch = worker.step()
    assert batch is not None
    assert batch.is_scan
    assert worker.is_drained()


def test_a_scan_that_the_program_stops_is_no_fault(watched: Watched) -> None:
    write(watched, (0, 3))
    require_scan(watched)
    stop, told = threading.Event(), list[object]()

    class StopsAtMatching(NullProgress):
        def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
            if step == "matching":
                stop.set()

    progress = StoppableProgress(StopsAtMatching(), stop)
    worker = Deduplicator(watched.dedup.database, "letters_0", progress=progress).worker()
    ChangeWorker([worker], on_batch=told.append, on_fault=lambda *fault: told.append(fault)).run(stop)
    assert stop.is_set()
    assert told == []
    (status,) = watched.dedup.database.status()
    assert status.last_scan_state == "failed"
