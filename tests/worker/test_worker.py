"""What else a worker meets: a long queue, other settings, a changed table, sessions set up otherwise."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, delete, select, text, update

from db_dedup import Deduplicator, Text
from db_dedup.errors import ConfigError, DatabaseError, DedupError, NotScannedError, RecipeDiffersError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.scan_choice import Task
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.store import neighbours, scans
from tests.servers import Database
from tests.worker.conftest import (
    body,
    change,
    count_waiting,
    dead,
    drain,
    is_right,
    queue_changes,
    write,
)
from tests.worker.test_faults import SERVERS
from tests.worker.watched import Watched

LONG_QUEUE = 100_000
RATES = (50, 200, 500)
"""Changes a second: fewer than 300 for a scan of a second in SQLite, than in other databases, and more."""


def test_a_long_queue_is_scanned_instead(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    write(watched, range(12))
    queue_changes(watched, [str(i % 12) for i in range(LONG_QUEUE)])
    with caplog.at_level(logging.INFO, "db_dedup.jobs.worker.scan_choice"):
        batches = drain(watched, 5_000)
    assert [batch.is_scan for batch in batches].count(True) == 1
    assert sum(batch.changes for batch in batches) == LONG_QUEUE + 12
    assert sum(batch.changes for batch in batches if batch.is_scan) > LONG_QUEUE // 2
    assert "a scan is cheaper" in caplog.text
    assert count_waiting(watched) == 0
    assert is_right(watched)


def test_what_another_engine_has_scanned_is_not_scanned_for_speed(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take this engine hours, or more memory than there is."""
    write(watched, range(3))
    drain(watched)
    queue_changes(watched, ["0"] * 300)
    database, slow_rate = watched.dedup.database, 0.001

    def chosen() -> list[Task]:
        choice = watched.dedup.worker()._choice
        with database.engine.connect() as connection:
            stored = watched.read_stored(connection)
            of_speed = choice.choose(connection, stored, slow_rate)
            monkeypatch.setattr(choice.frames, "wants_scan", lambda *_: True)
            return [of_speed, choice.choose(connection, stored, None)]

    assert chosen() == [Task.OPTIONAL_SCAN, Task.OPTIONAL_SCAN]
    with database.engine.begin() as connection:
        scan = database.tables.scan
        for row in connection.execute(select(scan.c.id, scan.c.report)).all():
            report = json.loads(row.report)
            assert report["engine"] == "embedded"
            changed = json.dumps(report | {"engine": "spark"})
            connection.execute(update(scan).where(scan.c.id == row.id).values(report=changed))
    assert chosen() == [Task.BATCH, Task.BATCH]


def test_in_sqlite_a_scan_must_be_much_cheaper(watched: Watched) -> None:
    """Its writing keeps other writers out for longer than a batch does."""
    write(watched, range(3))
    drain(watched)
    queue_changes(watched, [str(i % 3) for i in range(300)])
    choice, database = watched.dedup.worker()._choice, watched.dedup.database
    with database.engine.connect() as connection:
        stored = watched.read_stored(connection)
        last = scans.last_finished(connection, database.tables, stored.id)
        assert last is not None
        of_a_second = replace(last, seconds=0.5)
        is_preferred = [
            choice._prefers_scan(connection, stored, of_a_second, rate) for rate in (50, 200, 500)
        ]
    assert is_preferred == [True, database.engine.dialect.name != "sqlite", False]


def test_where_that_scan_fails_batches_go_on(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(_: Deduplicator) -> None:
        raise ConfigError("no")

    write(watched, range(12))
    queue_changes(watched, [str(i % 12) for i in range(12_000)])
    monkeypatch.setattr(Deduplicator, "scan", scan)
    drain(watched, 1_000)
    assert is_right(watched)


def test_an_abridged_group_is_matched_again_without_its_first_row(watched: Watched) -> None:
    """Only the pairs that connect it are stored, most of them with the row that is deleted."""
    write(watched, range(6))
    for number, letter in enumerate("bcdfgh"):
        change(watched, number, body(0) + letter)
    drain(watched)
    assert watched.stored()["groups"][0][-1], "it is abridged"
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(delete(watched.letters).where(watched.letters.c.id == 0))
    drain(watched)
    assert is_right(watched)


def test_changes_of_two_tables(database: Database) -> None:
    watched = [Watched.make(database.engine, 0), Watched.make(database.engine, 2)]
    for one in watched:
        write(one, range(6))
    done: list[Batch] = []
    tables = [one.dedup.worker() for one in watched]
    ChangeWorker(tables, on_batch=done.append).run(threading.Event(), drain=True)
    assert {batch.table for batch in done} == {"letters_0", "letters_2"}
    assert all(is_right(one) for one in watched)


def test_rows_that_were_there_before_the_triggers_are_scanned_first(database: Database) -> None:
    watched = Watched.make(database.engine, 0)
    watched.dedup.detach()
    write(watched, (0, 3))
    watched.dedup.attach()
    assert [batch.is_scan for batch in drain(watched)] == [True]
    assert is_right(watched)


def test_a_table_without_triggers_is_refused(watched: Watched) -> None:
    worker = watched.dedup.worker()
    watched.dedup.detach()
    with pytest.raises(NotScannedError, match="run `db-dedup attach letters_0` first"):
        worker.step()


def test_settings_that_differ_are_refused(watched: Watched) -> None:
    other = Deduplicator(watched.dedup.database, "letters_0", {"body": Text(weight=3)}, order="received")
    with pytest.raises(RecipeDiffersError, match="run `db-dedup scan letters_0`"):
        other.worker()


def test_another_recipe_is_taken_up_and_never_undone(watched: Watched) -> None:
    """Somebody scans by other settings while the worker runs; a scan of its own keeps to them."""
    write(watched, (0, 3))
    worker = watched.dedup.worker()
    worker.step()
    other = Deduplicator(
        watched.dedup.database, "letters_0", {"body": Text()}, preset="strict", segmenter="words"
    )
    other.scan()
    watched.dedup.detach()
    other.attach()
    write(watched, (6, 12))
    ChangeWorker([worker]).run(threading.Event(), drain=True)
    assert other.verify().answer.count == 0
    with pytest.raises(RecipeDiffersError):
        watched.dedup.worker()


@SERVERS
def test_a_column_that_is_dropped_stops_the_worker_and_loses_nothing(
    database: Database, watched: Watched
) -> None:
    write(watched, (0, 3))
    worker = watched.dedup.worker()
    worker.step()
    write(watched, (6,))
    drop = "ALTER TABLE letters_0 DROP COLUMN body" + (" CASCADE" if database.name == "postgresql" else "")
    with database.engine.begin() as connection:
        connection.execute(text(drop))
    with pytest.raises(DatabaseError, match="a column is missing"):
        ChangeWorker([worker]).run(threading.Event(), drain=True)
    with pytest.raises(ConfigError, match="'body'"):
        ChangeWorker([watched.dedup.worker()]).run(threading.Event(), drain=True)
    assert (count_waiting(watched), dead(watched)) == (1, [])


@pytest.mark.parametrize("level", ["AUTOCOMMIT", "SERIALIZABLE"])
def test_a_batch_is_one_transaction_whatever_the_engine_says(
    database: Database, watched: Watched, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(watched, (0, 3))
    engine = create_engine(database.url, isolation_level=level)
    dedup = Deduplicator(engine, "letters_0")

    def fail(*_: object) -> None:
        raise OSError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(neighbours, "write_groups", fail)
        with pytest.raises(DedupError, match="failed with OSError"):
            dedup.worker().step()
    assert count_waiting(watched) == 2
    assert not watched.stored()["pairs"]
    dedup.worker().step()
    assert is_right(watched)
    engine.dispose()


def test_memory_is_read_again_after_another_worker(watched: Watched) -> None:
    first, second = (watched.dedup.worker() for _ in range(2))
    for number, worker in enumerate((first, second, first, second, second, first)):
        write(watched, (3 * number,))
        worker.step()
        assert watched.stored() == watched.fresh()
    change(watched, 3, body(1))
    second.step()
    assert is_right(watched)


def test_the_queue_of_a_table_is_its_own(database: Database) -> None:
    watched = [Watched.make(database.engine, number) for number in (0, 2)]
    for one in watched:
        write(one, range(3))
    drain(watched[0])
    assert count_waiting(watched[1]) == 3
    with database.engine.begin() as connection:
        connection.execute(delete(watched[0].letters))
    drain(watched[0])
    assert not watched[0].stored()["members"]
    drain(watched[1])
    assert watched[1].stored() == watched[1].fresh()
