"""A fault of one table does not stop the others; it is reported once, and the table comes back by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup import Deduplicator
from db_dedup.errors import (
    DatabaseUnavailableError,
    DedupError,
    FaultyTablesError,
    NotScannedError,
    ReadOnlyDatabaseError,
    UnknownNameError,
)
from db_dedup.jobs.worker.change_worker import ChangeWorker, LateTable
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.jobs.worker.worker_table import Batch
from tests.servers import Database
from tests.worker.conftest import write
from tests.worker.watched import Watched


@contextmanager
def opened(database: Database, name: str) -> Iterator[TableWorker]:
    yield Deduplicator(database.engine, name).worker()


def late(database: Database, *names: str) -> list[LateTable]:
    return [LateTable(name, partial(opened, database, name)) for name in names]


def rename(database: Database, old: str, new: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))


@pytest.fixture
def two(database: Database) -> tuple[Watched, Watched]:
    """Two watched tables, each with changes."""
    first, second = (Watched.make(database.engine, number) for number in (0, 2))
    for watched in (first, second):
        write(watched, (0, 3))
    return first, second


def test_a_table_that_is_gone_is_named_at_the_end(database: Database, two: tuple[Watched, Watched]) -> None:
    rename(database, "letters_0", "elsewhere")
    told: list[tuple[str, DedupError | None]] = []
    tables = late(database, "letters_0", "never_watched", "letters_2")
    worker = ChangeWorker(tables, on_fault=lambda name, fault: told.append((name, fault)))
    with pytest.raises(FaultyTablesError, match=r"letters_0: .*never_watched: ") as caught:
        worker.run(threading.Event(), drain=True)
    assert caught.value.exit_code == 1
    assert [name for name, _ in told] == ["letters_0", "never_watched"]
    assert two[1].stored() == two[1].fresh()
    assert two[1].stored()["pairs"]


def test_a_table_that_comes_back_is_taken_up_again(database: Database, two: tuple[Watched, Watched]) -> None:
    rename(database, "letters_0", "elsewhere")
    stop = threading.Event()
    told: list[tuple[str, bool]] = []
    done: list[str] = []

    def on_fault(name: str, fault: DedupError | None) -> None:
        told.append((name, fault is None))

    def on_batch(batch: Batch) -> None:
        done.append(batch.table)
        if batch.table == "letters_2":
            rename(database, "elsewhere", "letters_0")
        else:
            stop.set()

    ChangeWorker(late(database, "letters_0", "letters_2"), 0.01, on_batch, on_fault).run(stop)
    assert done == ["letters_2", "letters_0"]
    assert told == [("letters_0", False), ("letters_0", True)]
    for watched in two:
        assert watched.stored() == watched.fresh()


def test_a_fault_is_reported_again_when_it_changes(database: Database, two: tuple[Watched, Watched]) -> None:
    rename(database, "letters_0", "elsewhere")
    stop = threading.Event()
    told: list[str] = []

    def on_fault(_: str, fault: DedupError | None) -> None:
        told.append(str(fault))
        if len(told) == 1:
            rename(database, "elsewhere", "letters_0")
            two[0].dedup.detach()
        else:
            stop.set()

    ChangeWorker(late(database, "letters_0", "letters_2"), 0.01, on_fault=on_fault).run(stop)
    assert len(told) == 2
    assert "'letters_0' has no triggers" in told[1]


def test_where_no_table_can_be_worked_on_the_worker_ends(
    database: Database, two: tuple[Watched, Watched]
) -> None:
    with pytest.raises(UnknownNameError, match="letters_7"):
        ChangeWorker(late(database, "letters_7")).run(threading.Event())
    for watched in two:
        watched.dedup.detach()
    with pytest.raises(FaultyTablesError, match=r"letters_0: .*letters_2: "):
        ChangeWorker(late(database, "letters_0", "letters_2")).run(threading.Event())
    with pytest.raises(NotScannedError):
        ChangeWorker(late(database, "letters_0")).run(threading.Event())


class Away:
    """A table whose database never answers, and when it was asked."""

    name, gap_seconds = "letters", 0.0

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.asked: list[float] = []

    def step(self) -> Batch | None:
        self.asked.append(self._now())
        raise DatabaseUnavailableError("the server is away")

    def is_drained(self) -> bool:
        return False

    def translate_error(self, error: SQLAlchemyError) -> DedupError:
        raise error

    def forget(self) -> None: ...


class Clock(threading.Event):
    """Waits without waiting, and stops after an hour by its own clock."""

    now = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.now += max(timeout or 0.0, 0.001)
        if self.now > 3600:
            self.set()
        return self.is_set()


def test_a_table_that_is_away_is_asked_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    # Only for this module: the clock of all others is that of a service which other tests leave running.
    own_time = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr("db_dedup.jobs.worker.change_worker.time", own_time)
    table = Away(lambda: clock.now)
    ChangeWorker([table], on_fault=lambda *_: None).run(clock)
    pauses = [later - earlier for earlier, later in pairwise(table.asked)]
    assert pauses[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert max(pauses) == pytest.approx(30.0)
    assert pauses == pytest.approx(sorted(pauses))


class ReadOnly(Away):
    """A table whose server takes no writes, and how often its sessions were given up."""

    given_up = 0

    def step(self) -> Batch | None:
        self.asked.append(self._now())
        raise ReadOnlyDatabaseError("the server is read-only")

    def forget(self) -> None:
        self.given_up += 1


def test_no_session_that_began_on_a_read_only_server_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    own_time = SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr("db_dedup.jobs.worker.change_worker.time", own_time)
    table = ReadOnly(lambda: clock.now)
    ChangeWorker([table], on_fault=lambda *_: None).run(clock)
    assert table.given_up == len(table.asked) > 1
