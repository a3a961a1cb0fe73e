"""One scan of a table at a time: the second is refused, and one that slept too long has lost its turn."""

from __future__ import annotations

import os
import queue
import signal
import socket
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.config import watched_table
from db_dedup.errors import ScanRunningError
from db_dedup.jobs.scan import lease
from db_dedup.jobs.scan.full_scan import FullScan
from db_dedup.store import clock, watched_tables
from tests.bad_input.conftest import Watcher
from tests.interrupted.conftest import by_settings, change_recipe, dump, stopped_at
from tests.scan.conftest import answer
from tests.servers import Database

ME = f"{socket.gethostname()}:{os.getpid()}:"
COLUMNS = {"title": 1, "content": 1}


def watching(database: Database, act: Callable[[], object], step: str) -> Deduplicator:
    """A scan during whose step something happens."""
    return Deduplicator(database.engine, "petitions", COLUMNS, Watcher(act, step), order="created_at")


def refused(database: Database) -> Callable[[], None]:
    def scan() -> None:
        with pytest.raises(ScanRunningError, match=ME):
            by_settings(database).scan()

    return scan


@pytest.mark.parametrize("step", ["fingerprints", "matching", "writing the answer"])
def test_the_second_scan_is_refused_and_names_the_first(petitions: Database, step: str) -> None:
    by_settings(petitions).upgrade()
    first = watching(petitions, refused(petitions), step)
    assert first.scan().rows == 90
    by_settings(petitions).scan()


@pytest.mark.parametrize("comes_late", [False, True])
def test_a_scan_waits_for_a_fold_of_the_index(
    petitions: Database, monkeypatch: pytest.MonkeyPatch, comes_late: bool
) -> None:
    """Also for one that takes the lease after the scan has looked."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    tables, owner, ended = dedup.database.tables, lease.new_owner(folds=True), []
    take = watched_tables.take_lease

    def begin_fold(*_: object) -> str | None:
        monkeypatch.setattr(watched_tables, "take_lease", take)
        with dedup.database.dialect.write_transaction(petitions.engine) as connection:
            stored = watched_tables.find_table(connection, tables, "petitions")
            assert stored is not None
            return take(connection, tables, stored.id, owner) or owner

    def end_fold() -> None:
        ended.append(owner)
        with dedup.database.dialect.write_transaction(petitions.engine) as connection:
            watched_tables.drop_lease(connection, tables, owner)

    if comes_late and petitions.name != "sqlite":  # where the look and the lease are one after the other
        monkeypatch.setattr(watched_tables, "take_lease", begin_fold)
    else:
        begin_fold()
    assert watching(petitions, end_fold, "waiting for the index to be folded").scan().rows == 90
    assert ended


def test_it_is_refused_at_once_while_the_first_one_switches(
    petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one holds its lock on the table's row: the second does not wait for it."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    serve = watched_tables.serve_recipe

    def serving(*arguments: Any) -> None:
        serve(*arguments)
        refused(petitions)()

    monkeypatch.setattr(watched_tables, "serve_recipe", serving)
    assert dedup.scan().rows == 90


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_of_two_first_scans_one_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find no row for the table and want to write it. In SQLite the second waits before it looks."""
    petitions_table.create(database.engine)
    watched = watched_table("petitions", {"columns": COLUMNS})
    dedup = Deduplicator(database.engine, watched)
    dedup.upgrade()
    tables, find, other = dedup.database.tables, watched_tables.find_table, "elsewhere:1:1"

    def finding(*arguments: Any) -> Any:
        found = find(*arguments)
        monkeypatch.setattr(watched_tables, "find_table", find)
        with dedup.database.dialect.write_transaction(database.engine) as connection:
            table_id = watched_tables.add_table(connection, tables, watched).id
            watched_tables.take_lease(connection, tables, table_id, other)
        return found

    monkeypatch.setattr(watched_tables, "find_table", finding)
    with pytest.raises(ScanRunningError, match=other):
        dedup.scan()


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)
def test_a_scan_that_waited_for_the_end_of_another_sees_what_it_left(
    petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look at the table and its lease, another scan switches to the very recipe that it is of."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    changed = change_recipe(petitions)
    take = watched_tables.take_lease

    def taking(*arguments: Any) -> Any:
        monkeypatch.setattr(watched_tables, "take_lease", take)
        changed.scan()
        return take(*arguments)

    monkeypatch.setattr(watched_tables, "take_lease", taking)
    serves, switch = [], FullScan._switch

    def switching(scan: FullScan, run: Any, *arguments: Any) -> Any:
        serves.append(run.serves)
        return switch(scan, run, *arguments)

    monkeypatch.setattr(FullScan, "_switch", switching)
    changed.scan()
    assert serves == [False, True]


@pytest.mark.parametrize("point", ["between pages", "matching", "between pieces"])
def test_a_scan_that_slept_beyond_its_lease_writes_nothing(
    petitions: Database, point: str, let_leases_end: Callable[[], None]
) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    with stopped_at(point) as sleeper:
        sleeper.send(signal.SIGSTOP)
        os.waitpid(sleeper.process.pid, os.WUNTRACED)
        let_leases_end()
        dedup.scan()
        shown, stored = answer(dedup), dump(dedup, "scan")
        sleeper.send(signal.SIGCONT)
        code, said = sleeper.end()
    assert code == 1
    assert said.startswith(
        "error: this scan was suspended for so long that another scan or the worker took over"
    )
    assert said.count("\n") == 1
    assert dump(dedup, "scan") == stored
    assert answer(dedup) == shown
    assert dedup.verify().is_right


def test_a_scan_that_slept_while_it_removed_the_former_answer_has_done_its_work(
    petitions: Database, let_leases_end: Callable[[], None]
) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.scan()
    dedup = change_recipe(petitions)
    with stopped_at("between removals") as sleeper:
        sleeper.send(signal.SIGSTOP)
        os.waitpid(sleeper.process.pid, os.WUNTRACED)
        let_leases_end()
        dedup.scan()
        stored = dump(dedup)
        sleeper.send(signal.SIGCONT)
        assert sleeper.end()[0] == 0
    assert dump(dedup) == stored
    assert dedup.verify().is_right


@pytest.mark.parametrize("is_fenced", [True, False])
def test_a_scan_that_slept_does_not_undo_what_the_worker_did(
    petitions: Database,
    let_leases_end: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    is_fenced: bool,
) -> None:
    """The worker goes on once the lease has ended; the scan still believes in the rows as it read them, and
    without the fence it writes what it believes."""
    dedup = by_settings(petitions)
    dedup.upgrade()
    dedup.attach()
    dedup.scan()

    def change() -> None:
        let_leases_end()
        with petitions.engine.begin() as connection:
            connection.execute(update(petitions_table).values(content="所有的内容都换成了这一句话"))
        worker = dedup.worker()
        while worker.step():
            pass

    if is_fenced:
        refused: Any = pytest.raises(ScanRunningError, match="the worker took over")
    else:
        monkeypatch.setattr(lease.Lease, "fence", lambda *_: None)
        refused = nullcontext()
    with refused:
        watching(petitions, change, "writing the answer").scan()
    assert dedup.verify().is_right is is_fenced


def test_the_heartbeat_keeps_the_lease_through_long_computing(
    petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_settings(petitions).upgrade()
    now, renewed, renew = [clock.utc_now()], queue.SimpleQueue[Any](), watched_tables.renew_lease

    def renewing(*arguments: Any) -> bool:
        renewed.put(now[0])
        return renew(*arguments)

    def two_minutes_pass() -> None:
        now[0] += timedelta(minutes=2)
        for _ in range(2):  # when the second begins, the first has been committed
            while renewed.get(timeout=60) != now[0]:
                pass
        refused(petitions)()

    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(watched_tables, "database_now", lambda _: now[0])
    monkeypatch.setattr(watched_tables, "renew_lease", renewing)
    assert watching(petitions, two_minutes_pass, "matching").scan().rows == 90


def test_a_heartbeat_that_fails_is_followed_by_others(
    sqlite_petitions: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedup = by_settings(sqlite_petitions)
    dedup.upgrade()
    dedup.scan()
    calls, beats, renew = count(1), queue.SimpleQueue[int](), watched_tables.renew_lease

    def renewing(*arguments: Any) -> bool:
        call = next(calls)
        beats.put(call)
        if call == 1:
            raise OperationalError("UPDATE", None, Exception("away"))
        return renew(*arguments)

    def three_beats() -> None:
        for _ in range(3):
            beats.get(timeout=60)

    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(watched_tables, "renew_lease", renewing)
    assert watching(sqlite_petitions, three_beats, "matching").scan().rows == 90


def test_the_lease_is_free_after_each_end(petitions: Database) -> None:
    dedup = by_settings(petitions)
    dedup.upgrade()

    def fail() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        watching(petitions, fail, "matching").scan()
    dedup.scan()
    watched = dedup.database.tables.watched_table
    with petitions.engine.connect() as connection:
        assert connection.execute(select(watched.c.lease_owner, watched.c.lease_until)).all() == [
            (None, None)
        ]
