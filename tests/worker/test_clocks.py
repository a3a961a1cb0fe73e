"""A machine whose clock is wrong: what is due and what is known does not hang on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from db_dedup.store import clock, watched_tables
from tests.worker.conftest import count_waiting, drain, is_right, queue_changes, write
from tests.worker.test_faults import SERVERS
from tests.worker.test_worker import LONG_QUEUE
from tests.worker.watched import Watched

SetClock = Callable[[float], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """A function: from its call on, this machine's clock is so many hours ahead."""

    def set_ahead(hours: float) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, *zone: Any) -> Any:
                return datetime.now(*zone) + timedelta(hours=hours)

        monkeypatch.setattr(clock, "datetime", Clock)

    return set_ahead


@SERVERS
def test_what_was_written_before_the_triggers_is_scanned(watched: Watched, set_clock: SetClock) -> None:
    """The scan was made by a machine ahead of the one that attaches."""
    watched.dedup.detach()
    set_clock(1)
    watched.dedup.scan()
    write(watched, (0, 3))
    set_clock(0)
    watched.dedup.attach()
    assert count_waiting(watched) == 0
    drain(watched)
    assert is_right(watched)


def assert_scanned_once(watched: Watched) -> None:
    worker = watched.dedup.worker()
    first, second = worker.step(), worker.step()
    assert first is not None
    assert first.is_scan
    assert second is None
    assert is_right(watched)


@SERVERS
def test_a_table_is_scanned_once(watched: Watched, set_clock: SetClock) -> None:
    """The triggers were made by a machine ahead of the worker's."""
    watched.dedup.detach()
    write(watched, (0, 3))
    set_clock(1)
    watched.dedup.attach()
    set_clock(0)
    assert_scanned_once(watched)


@SERVERS
def test_a_long_queue_is_seen_as_such(watched: Watched, set_clock: SetClock) -> None:
    """The last scan was made by a machine ahead of the database."""
    set_clock(1)
    watched.dedup.scan()
    set_clock(0)
    write(watched, range(12))
    queue_changes(watched, [str(i % 12) for i in range(LONG_QUEUE)])
    assert any(batch.is_scan for batch in drain(watched, 5_000))


def move_times(watched: Watched, table: str, *columns: str) -> None:
    """Let what is stored be of a time a day later: since then the database's clock was set back."""
    moved = getattr(watched.dedup.database.tables, table)
    with watched.dedup.database.engine.begin() as connection:
        (row,) = connection.execute(select(*(moved.c[name] for name in columns)))
        later = {name: getattr(row, name) + timedelta(days=1) for name in columns}
        connection.execute(moved.update().values(later))


def test_a_table_attached_before_the_clock_was_set_back_is_scanned_once(watched: Watched) -> None:
    write(watched, (0, 3))
    move_times(watched, "watched_table", "attached_at")
    assert_scanned_once(watched)


def test_a_scan_before_the_clock_was_set_back_is_older_than_the_triggers(watched: Watched) -> None:
    watched.dedup.detach()
    move_times(watched, "scan", "started_at", "finished_at")
    write(watched, (0, 3))
    watched.dedup.attach()
    assert count_waiting(watched) == 0
    drain(watched)
    assert is_right(watched)
    assert watched.dedup.worker().step() is None


def test_a_scan_that_was_killed_before_the_clock_was_set_back_keeps_nobody_out(watched: Watched) -> None:
    write(watched, (0, 3))
    tables = watched.dedup.database.tables
    with watched.dedup.database.engine.begin() as connection:
        (stored,) = watched_tables.list_tables(connection, tables)
        assert watched_tables.take_lease(connection, tables, stored.id, "host:1:killed") is None
    assert watched.dedup.worker().step() is None
    move_times(watched, "watched_table", "lease_until")
    batch = watched.dedup.worker().step()
    assert batch is not None
    assert batch.changes == 2
    with watched.dedup.database.engine.begin() as connection:
        watched_tables.take_lease(connection, tables, stored.id, "host:1:killed")
    move_times(watched, "watched_table", "lease_until")
    watched.dedup.scan()
    assert is_right(watched)
