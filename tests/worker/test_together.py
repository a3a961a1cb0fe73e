"""Workers, scans and writers at the same time; and what happens without the rules that keep them right."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Integer, cast, create_engine, event, select, update
from sqlalchemy.exc import OperationalError

from db_dedup.errors import ScanRunningError
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.store import changes, watched_tables
from tests.servers import Database
from tests.worker.child import Worker
from tests.worker.conftest import body, change, count_waiting, drain, is_right, write
from tests.worker.test_faults import SERVERS
from tests.worker.watched import Watched, wait_for_nobody

AFTER_ROWS = "after the rows are written"
WITHOUT_BANDS = 2
"""Number of a way of watching in which nothing but the lock keeps two workers apart."""


@SERVERS
def test_a_second_worker_waits_for_the_first(database: Database) -> None:
    watched = Watched.make(database.engine, WITHOUT_BANDS)
    write(watched, (0, 3))
    arguments = (database.url, watched.letters.name, "--drain", "--batch", "1")
    with Worker(*arguments, stop_at=AFTER_ROWS) as first, Worker(*arguments, stop_at=AFTER_ROWS) as second:
        while not (first.reaches(0.05) or second.reaches(0.05)):
            assert first.process.is_alive()
        assert not (first.reaches(0.5) and second.reaches(0.5))
        for worker in (first, second):
            worker.go_on()
        assert (first.end(), second.end()) == (0, 0)
    assert is_right(watched)


@SERVERS
def test_without_the_lock_two_workers_lose_a_pair(database: Database) -> None:
    watched = Watched.make(database.engine, WITHOUT_BANDS)
    write(watched, (0, 3))
    arguments = (database.url, watched.letters.name, "--drain", "--batch", "1")
    with (
        Worker(*arguments, stop_at=AFTER_ROWS, without_lock=True) as first,
        Worker(*arguments, stop_at=AFTER_ROWS, without_lock=True) as second,
    ):
        assert first.reaches()
        assert second.reaches()
        for worker in (first, second):
            worker.go_on()
        assert (first.end(), second.end()) == (0, 0)
    assert count_waiting(watched) == 0
    assert not watched.stored()["pairs"]
    assert watched.fresh()["pairs"]


def test_writers_workers_and_a_scan_at_once(database: Database, watched: Watched) -> None:
    """Many writers on the same few rows in any order, so that they run into each other."""
    write(watched, range(12))
    workers = 2 if database.name == "sqlite" else 4
    with ExitStack() as stack:
        started = [
            stack.enter_context(Worker(database.url, watched.letters.name, "--batch", "7"))
            for _ in range(workers)
        ]
        writers = [
            threading.Thread(target=_write_at_random, args=(database, watched, n), daemon=True)
            for n in range(3)
        ]
        for writer in writers:
            writer.start()
        _scan_when_free(watched)
        for writer in writers:
            writer.join()
        for worker in started:
            worker.process.terminate()
        assert [worker.end() for worker in started] == [0] * workers
    drain(watched)
    assert is_right(watched)


def _scan_when_free(watched: Watched) -> None:
    """A worker scans too where that is cheaper than its batches, and another scan is refused meanwhile."""
    while True:
        try:
            watched.dedup.scan()
            break
        except ScanRunningError:
            time.sleep(0.05)


def _write_at_random(database: Database, watched: Watched, number: int) -> None:
    chance = random.Random(number)
    engine = create_engine(database.url)
    table = watched.letters
    for _ in range(15):
        chosen = [(chance.randrange(12), body(chance.randrange(9))) for _ in range(3)]
        while True:
            try:
                with engine.begin() as connection:
                    for key, text in chosen:
                        connection.execute(update(table).where(table.c.id == key).values(body=text))
                break
            except OperationalError:  # they waited for each other
                continue
    engine.dispose()


def test_a_worker_leaves_a_table_that_is_scanned_alone(watched: Watched) -> None:
    write(watched, (0, 3))
    database, worker = watched.dedup.database, watched.dedup.worker()

    def lease(release: bool) -> None:
        with database.dialect.write_transaction(database.engine) as connection:
            stored, _ = watched_tables.lock_table(connection, database.tables, watched.letters.name)
            assert stored is not None
            if release:
                watched_tables.drop_lease(connection, database.tables, "a scan")
            else:
                watched_tables.take_lease(connection, database.tables, stored.id, "a scan")

    lease(release=False)
    assert worker.step() is None
    assert count_waiting(watched) == 2
    lease(release=True)
    assert worker.step() is not None
    assert is_right(watched)


@SERVERS
def test_a_worker_passes_over_a_transaction_that_is_not_done(database: Database, watched: Watched) -> None:
    wait_for_nobody(database.engine, database.name)
    database.engine.dispose()
    write(watched, (0, 1))
    table = watched.letters
    with database.engine.connect() as late:
        late.execute(update(table).where(table.c.id == 0).values(body=body(1)))
        write(watched, (3, 4))
        drain(watched)
        assert ("0", "3") in {pair[:2] for pair in watched.stored()["pairs"]}
        late.commit()
    # Queued before what is handled by now, and not lost: nothing is remembered of how far the queue was read.
    assert count_waiting(watched) == 1
    drain(watched)
    assert is_right(watched)


@SERVERS
def test_a_candidate_that_changes_for_a_moment_keeps_its_pairs(watched: Watched) -> None:
    """It is not what is stored when it is looked at, and is again when its own change is handled."""
    write(watched, (0,))
    drain(watched)
    write(watched, (3,))
    with _changed_before_it_is_read(watched):
        watched.dedup.worker().step()
    assert not watched.stored()["pairs"]
    change(watched, 0, body(0))
    drain(watched)
    assert is_right(watched)


@contextmanager
def _changed_before_it_is_read(watched: Watched) -> Iterator[None]:
    """Row 0 gets another text once the changed rows are read, before any statement that looks for others.

    So no transaction that reads it has begun before: in MariaDB that would still see the former text.
    """
    engine, reads = watched.dedup.database.engine, list[str]()
    writer = create_engine(engine.url)
    table = watched.letters

    def watch(_: Connection, __: Any, statement: str, *___: Any) -> None:
        if len(reads) == 1:
            with writer.begin() as connection:
                connection.execute(update(table).where(table.c.id == 0).values(body="nothing like it"))
        if reads or f"JOIN {table.name}" in statement.replace('"', "").replace("`", ""):
            reads.append(statement)

    event.listen(engine, "before_cursor_execute", watch)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", watch)
        writer.dispose()
    assert len(reads) >= 2


@SERVERS
@pytest.mark.parametrize("reads_first", [False, True])
def test_a_row_is_read_after_its_change_is_taken(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, reads_first: bool
) -> None:
    """Read before, an update in between would be lost: its change is gone, its text was not seen."""
    write(watched, (0, 3))
    worker = watched.dedup.worker()
    original = changes.take_changes

    def take(connection: Connection, *arguments: Any) -> Any:
        rows = list(watched.source.read_rows(connection, ["0", "3"]))
        change(watched, 3, "nothing like it")
        if reads_first:
            monkeypatch.setattr(type(watched.source), "read_rows", lambda *_: iter(rows))
        # More than were matched ahead, so that the new change is taken, too.
        dialect, tables, table_id = arguments[:3]
        return original(connection, dialect, tables, table_id, 10)

    with monkeypatch.context() as patch:
        patch.setattr(changes, "take_changes", take)
        worker.step()
    monkeypatch.undo()
    assert count_waiting(watched) == 0
    assert (watched.stored() == watched.fresh()) is not reads_first


def test_one_transaction_at_a_time_lets_the_application_write(sqlite_database: Database) -> None:
    """SQLite's own patience, five seconds, is enough for whoever writes beside a worker."""
    watched = Watched.make(sqlite_database.engine, 0)
    write(watched, range(400))
    with Worker(sqlite_database.url, watched.letters.name, stop_at="after the commit") as worker:
        assert worker.reaches()
        assert 0 < count_waiting(watched) < 400
        change = watched.dedup.database.tables.change
        of_first_rows = select(change.c.row_key).where(cast(change.c.row_key, Integer) < 400).limit(1)
        application: Engine = create_engine(sqlite_database.url)
        written, is_waiting = 400, True
        while is_waiting:
            with application.begin() as connection:
                values = {"id": written, "body": body(written), "region": "A", "received": 1}
                connection.execute(watched.letters.insert().values(values))
                worker.go_on()  # in the first transaction: the worker is not done before the others begin
                is_waiting = connection.scalar(of_first_rows) is not None
            written += 1
            assert worker.process.is_alive()
            time.sleep(0.01)  # as an application that has other things to do
        application.dispose()
        worker.process.terminate()
        assert worker.end() == 0
    drain(watched)
    assert is_right(watched)


def test_others_have_sqlite_between_two_batches(sqlite_database: Database) -> None:
    """Without the lock, and for as long as somebody who waits for it may sleep."""
    watched = Watched.make(sqlite_database.engine, 0)
    write(watched, range(5))
    impatient = create_engine(sqlite_database.url, connect_args={"timeout": 0})
    gaps: list[float | None] = []

    class Watch(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            gaps.append(timeout)
            with impatient.begin() as connection:
                values = {"id": 100 + len(gaps), "body": "nothing", "region": "A", "received": 1}
                connection.execute(watched.letters.insert().values(values))
            if len(gaps) == 3:
                self.set()
            return self.is_set()

    when_idle = 99.0
    ChangeWorker([watched.dedup.worker(batch_changes=1)], when_idle).run(Watch())
    impatient.dispose()
    assert len(gaps) == 3
    assert all(gap is not None and 0.01 <= gap < when_idle for gap in gaps)
