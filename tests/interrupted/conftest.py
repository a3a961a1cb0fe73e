"""Scans that are stopped at a point of the test's choice, and what stands in our tables before and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import NullPool, Table, create_engine, insert, select

from db_dedup import Deduplicator
from db_dedup.cli.demo import petitions as petitions_table
from db_dedup.config import DEFAULT_PRESET, PRESETS, Settings, WatchedTable
from db_dedup.sample import Sample, generate_petitions
from db_dedup.store import clock, watched_tables
from tests.cli.conftest import folder, petitions, sqlite_petitions, write_settings
from tests.engines.conftest import cluster, reached, servers
from tests.interrupted.child import WITH_A_PROCESS
from tests.scan.conftest import answer
from tests.servers import Database

__all__ = ["cluster", "folder", "petitions", "reached", "servers", "sqlite_petitions"]

Answer = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]

ROOT = Path(__file__).parent.parent.parent
SECONDS = 120
"""Patience with a busy machine; nothing waits for it to pass."""

RADIUS = PRESETS[DEFAULT_PRESET].radius
VOLATILE = {"lease_owner", "lease_until", "answer_version"}
CHANGED_RECIPE = 'term_frequency = "log"'


def at_points(*points: str, on_servers: tuple[str, ...]) -> pytest.MarkDecorator:
    """The test at each point in SQLite, and at those where the server has a part on the servers, too."""
    cases = [("sqlite", point) for point in points]
    cases += [(name, point) for name in ("postgresql", "mariadb") for point in on_servers]
    return pytest.mark.parametrize(("database", "point"), cases, indirect=["database"])


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(90, seed=21, duplicate_share=0.4)


class StoppedScan:
    """A scan in a process of its own that stands at a point."""

    def __init__(self, point: str, with_a_process: bool = False, table: str = "petitions") -> None:
        own = {"PYTHONPATH": str(ROOT)} | ({WITH_A_PROCESS: "1"} if with_a_process else {})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.interrupted.child", point, "scan", table],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **own},
        )
        assert self.process.stdout is not None
        reached = self.process.stdout.readline()
        if reached != b"here\n":
            raise AssertionError(self.end())

    def send(self, signal_number: int) -> None:
        """A signal to the process; Ctrl-C to all that it has started, too, as a terminal does."""
        if signal_number == signal.SIGINT:
            os.killpg(self.process.pid, signal_number)
        else:
            self.process.send_signal(signal_number)

    def end(self) -> tuple[int, str]:
        """Exit code and stderr, once the process and whatever it has started are gone; it goes on before."""
        _, stderr = self.process.communicate(b"\n", timeout=SECONDS)
        return self.process.returncode, stderr.decode()


@contextmanager
def stopped_at(point: str, with_a_process: bool = False, table: str = "petitions") -> Iterator[StoppedScan]:
    scan = StoppedScan(point, with_a_process, table)
    try:
        yield scan
    finally:
        scan.process.kill()
        scan.process.communicate(timeout=SECONDS)


@pytest.fixture
def let_leases_end(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: from its call on it is more than a lease later than it was."""

    def later() -> None:
        ahead = watched_tables.LEASE + timedelta(seconds=1)
        monkeypatch.setattr(watched_tables, "database_now", lambda c: clock.database_now(c) + ahead)

    return later


def by_settings(database: Database) -> Deduplicator:
    """The petitions, as the settings file in the current folder says."""
    return Deduplicator(database.engine, in_the_file())


def in_the_file() -> WatchedTable:
    return Settings.from_file(Path("dedup.toml")).watched("petitions")


def fresh_answer(dedup: Deduplicator) -> Answer:
    """What a scan by the settings file finds in a database that knows nothing but the rows as they are."""
    with dedup.database.engine.connect() as connection:
        rows = connection.execute(select(petitions_table)).mappings().all()
    with TemporaryDirectory() as folder:
        engine = create_engine(f"sqlite:///{folder}/fresh.db", poolclass=NullPool)
        petitions_table.create(engine)
        with engine.begin() as connection:
            connection.execute(insert(petitions_table), [dict(row) for row in rows])
        fresh = Deduplicator(engine, in_the_file())
        fresh.upgrade()
        fresh.scan()
        return answer(fresh)


def change_recipe(database: Database, settings: str = CHANGED_RECIPE) -> Deduplicator:
    write_settings(database, settings)
    return by_settings(database)


def dump(dedup: Deduplicator, *without: str, volatile: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in our tables; who is at work, and how often somebody was, only where asked for."""
    found = {}
    with dedup.database.engine.connect() as connection:
        for name, table in vars(dedup.database.tables).items():
            if isinstance(table, Table) and name not in without:
                columns = [c for c in table.columns if volatile or c.name not in VOLATILE]
                found[name] = sorted(map(tuple, connection.execute(select(*columns))), key=repr)
    return found


def stored_keys(dedup: Deduplicator, recipe: int) -> set[str]:
    row = dedup.database.tables.fingerprint
    with dedup.database.engine.connect() as connection:
        return set(connection.execute(select(row.c.row_key).where(row.c.recipe == recipe)).scalars())
