"""A worker and a schedule that start before their server wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from db_dedup import Deduplicator
from tests.health.conftest import do
from tests.health.process import SECONDS, background
from tests.servers import Database

SERVERS = pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)


def closed(url: str, folder: Path) -> tuple[str, Path, Path]:
    """A URL by another socket that is not there yet, the path of that one, and the path of the real one."""
    found = make_url(url)
    if found.get_backend_name() == "postgresql":
        name = f".s.PGSQL.{found.port or 5432}"
        real = Path(str(found.query["host"]), name)
        later: URL = found.update_query_dict({"host": str(folder)})
    else:
        name = "socket"
        real = Path(str(found.query["unix_socket"]))
        later = found.update_query_dict({"unix_socket": str(folder / name)})
    return later.render_as_string(hide_password=False), folder / name, real


@SERVERS
def test_a_worker(dedup: Deduplicator, database: Database, tmp_path: Path) -> None:
    dedup.scan()
    do(database, "DELETE FROM petitions WHERE id > 140")
    url, later, real = closed(database.url, tmp_path)
    with background("worker", "petitions", "--drain", "--url", url) as worker:
        said = worker.line()
        assert said.startswith("petitions: cannot connect")
        assert said.endswith("; trying again\n")
        later.symlink_to(real)
        assert worker.process.wait(SECONDS) == 0
        assert worker.rest() == "petitions: works again\n10 changes handled, 0 given up, 0 scans\n"


@SERVERS
def test_a_schedule(dedup: Deduplicator, database: Database, tmp_path: Path) -> None:
    do(database, "DELETE FROM petitions WHERE id > 140")
    assert dedup.name == "petitions"
    url, later, real = closed(database.url, tmp_path)
    with background("schedule", "petitions", "--every", "1d", "--once-now", "--url", url) as scheduled:
        said = scheduled.line()
        assert said.startswith("petitions: cannot connect")
        assert said.endswith("; trying again\n")
        later.symlink_to(real)
        assert scheduled.line().startswith("petitions: 140 rows in ")
        assert scheduled.end() == 0


def test_a_schedule_with_a_name_that_is_none(dedup: Deduplicator, database: Database) -> None:
    do(database, "DELETE FROM petitions WHERE id > 140")
    with background("schedule", "pettitions", "petitions", "--every", "1d", "--once-now") as scheduled:
        assert scheduled.line().startswith("pettitions: error: ")
        said = {scheduled.line().partition(":")[0], scheduled.line().partition(":")[0]}
        assert said == {"pettitions", "petitions"}
        assert scheduled.end() == 0
    with background("schedule", "pettitions", "--every", "1d") as scheduled:
        assert "did you mean petitions?" in scheduled.line()
        assert scheduled.process.wait(SECONDS) == 2
    assert dedup.verify().is_right
