"""`db-dedup run`: everything in one process, of which one of several leads."""

from __future__ import annotations

import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator
from db_dedup.cli import run as run_module
from db_dedup.config import Settings
from db_dedup.jobs.stopping import StoppedError
from db_dedup.progress import NullProgress
from tests.health.conftest import do
from tests.health.process import SECONDS, Background, background
from tests.servers import Database
from tests.web.conftest import Client

LEADING = "leading: worker and schedule run here\n"
WORKER_LEADS = "leading: the worker runs here\n"
WAITING = "waiting: another instance leads\n"
SERVED = "[server]\nport = 0\n"
NIGHTLY = '[schedule]\ncron = "0 3 * * *"\n'

pytestmark = pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)


def configure(*sections: str) -> None:
    """Put sections before those of the file."""
    file = Path("dedup.toml")
    file.write_text("\n".join((*sections, file.read_text(encoding="utf-8"))), encoding="utf-8")


def lines_until(process: Background, last: str) -> list[str]:
    lines = [process.line()]
    while last not in lines[-1]:
        assert lines[-1], lines
        lines.append(process.line())
    return lines


def served_by(process: Background) -> Client:
    """The client of a process that has just begun to serve."""
    port = re.search(r"http://127\.0\.0\.1:(\d+)/", lines_until(process, "serving; ")[-1])
    assert port
    return Client(int(port[1]))


def insert_copy(dedup: Deduplicator, database: Database, row_id: int) -> None:
    """One more row, equal to the tenth; wait until it is in the group of that one."""
    columns = "title, content, created_at"
    do(
        database,
        f"INSERT INTO petitions (id, {columns}) SELECT {row_id}, {columns} FROM petitions WHERE id = 10",
    )
    view = dedup.database.namespace.name("duplicate_members")
    name = f"{dedup.database.namespace.schema}.{view}" if dedup.database.namespace.schema else view
    query = text(f"SELECT count(*) FROM {name} WHERE row_key = '{row_id}'")
    for _ in range(SECONDS * 10):
        with database.engine.connect() as connection:
            if connection.scalar(query):
                return
        time.sleep(0.1)
    raise AssertionError(row_id)


def test_another_leads_when_the_leader_is_killed(dedup: Deduplicator, database: Database) -> None:
    configure(SERVED, NIGHTLY)
    with background("run") as first:
        assert LEADING in lines_until(first, "leading")
        with background("run") as second:
            assert WAITING in lines_until(second, "waiting")
            insert_copy(dedup, database, 9001)
            first.process.kill()
            lines_until(second, "leading")
            insert_copy(dedup, database, 9002)
            assert second.end() == 0
            assert second.rest().endswith("stopped\n")
    assert dedup.verify().is_right


def test_the_worker_of_the_leader_is_counted(dedup: Deduplicator, database: Database) -> None:
    with background("run", "--metrics-port", "0") as leader:
        port = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", lines_until(leader, "metrics on ")[-1])
        assert port
        lines_until(leader, "leading")
        insert_copy(dedup, database, 9001)
        handled = 'db_dedup_changes_total{outcome="handled",table="petitions"} 1.0\n'
        assert handled in when_there(f"http://127.0.0.1:{port[1]}/metrics", handled)
        dedup.detach()
        faulty = 'db_dedup_table_faulty{table="petitions"} 1.0\n'
        assert faulty in when_there(f"http://127.0.0.1:{port[1]}/metrics", faulty)
        assert leader.end() == 0


def when_there(url: str, wanted: str) -> str:
    """What is at a URL, as soon as the wanted text is there."""
    found = ""
    for _ in range(SECONDS * 10):
        with urlopen(url) as answer:  # noqa: S310 - of a process of ours
            found = answer.read().decode()
        if wanted in found:
            break
        time.sleep(0.1)
    return found


def test_every_instance_serves(dedup: Deduplicator, database: Database) -> None:
    assert dedup.name == "petitions"
    configure(SERVED)
    with background("run") as first, background("run") as second:
        for client in (served_by(first), served_by(second)):
            assert client.get("/tables").json() == {"tables": ["petitions"]}
            assert client.get("/health/live").json() == {"status": "live"}
        assert (first.end(), second.end()) == (0, 0)
        assert "GET /v1/tables 200" in first.rest()  # who asked what is logged as by `serve`
    with background("run") as third:  # a clean end leaves the lead to the next
        assert WORKER_LEADS in lines_until(third, "leading")
        assert third.end() == 0
    assert database.name


def test_without_a_schedule_it_does_not_claim_one(dedup: Deduplicator) -> None:
    assert dedup.name == "petitions"
    configure("")
    with background("run") as found:
        assert lines_until(found, "leading")[-1] == WORKER_LEADS
        assert found.end() == 0


def test_a_missed_scan_is_made_up_for(dedup: Deduplicator, database: Database) -> None:
    configure('[schedule]\nevery = "1d"\n')
    scan = dedup.database.tables.scan
    with database.engine.begin() as connection:
        long_ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=2)
        connection.execute(scan.update().values(started_at=long_ago, finished_at=long_ago))
    with background("run") as found:
        said = lines_until(found, " rows in ")
        assert "petitions: a scheduled scan was missed; scanning now\n" in said
        assert found.end() == 0
    with background("run") as found:
        assert LEADING in lines_until(found, "leading")
        assert found.end() == 0
        assert "missed" not in found.rest()


def test_a_port_that_is_taken_ends_all(dedup: Deduplicator, database: Database) -> None:
    assert (dedup.name, bool(database.name)) == ("petitions", True)
    configure(SERVED)
    with background("run") as first:
        port = served_by(first).port
        configured = Path("dedup.toml").read_text(encoding="utf-8")
        Path("dedup.toml").write_text(configured.replace("port = 0", f"port = {port}"), encoding="utf-8")
        with background("run") as second:
            assert second.process.wait(SECONDS) == 2
            assert f"error: cannot listen on 127.0.0.1, port {port}" in second.rest()
        assert first.end() == 0


def test_a_table_that_is_not_attached_waits_for_it(dedup: Deduplicator, database: Database) -> None:
    dedup.detach()
    with background("run") as found:
        said = lines_until(found, "worker: ")[-1]
        assert "attach" in said
        assert said.endswith("; trying again\n")
        assert found.end() == 0
    assert database.name


def test_a_scan_of_the_worker_stops_at_its_next_step(
    dedup: Deduplicator, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    dedup.detach()
    dedup.attach()
    stop = threading.Event()

    class StopsAtMatching(NullProgress):
        def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
            if step == "matching":
                stop.set()

    monkeypatch.setattr(run_module, "NullProgress", StopsAtMatching)
    file = Path("dedup.toml")
    parts = run_module._Parts(file, database.url, None, dedup.database, Settings.from_file(file))
    timer = threading.Timer(SECONDS, stop.set)  # a scan that hears nothing of it would never end the test
    timer.start()
    parts._handle_changes(stop)
    timer.cancel()
    (status,) = dedup.database.status()
    assert (status.last_scan_state, status.last_scan_error) == ("failed", str(StoppedError()))
