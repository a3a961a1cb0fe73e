"""A MariaDB or MySQL server that is restarted, or killed, while a worker is in the middle of a batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.conftest import private_server
from tests.servers import Database, Server, fresh_database, start_mariadb, start_mysql
from tests.worker.child import Worker
from tests.worker.conftest import count_waiting, is_right, write
from tests.worker.restarts import DURABLE_MYSQL
from tests.worker.watched import Watched

START = {"mariadb": start_mariadb, "mysql": start_mysql}


@pytest.fixture(scope="module", params=START)
def restarting_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    yield from private_server(request.param, partial(START[request.param], DURABLE_MYSQL, restarts=True))


@pytest.fixture
def database(restarting_server: Server) -> Iterator[Database]:
    with fresh_database(restarting_server) as database:
        yield database


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["restarted", "killed"])
@pytest.mark.parametrize("point", ["after the changes are taken", "after the pairs are written"])
def test_a_worker_outlives_its_server(database: Database, point: str, how: signal.Signals) -> None:
    watched = Watched.make(database.engine, 0)
    write(watched, range(12))
    with database.engine.connect() as connection:
        pid_file = Path(str(connection.scalar(text("SELECT @@pid_file"))))
    server = int(pid_file.read_text())
    database.engine.dispose()
    with Worker(database.url, watched.letters.name, "--drain", "--batch", "5", stop_at=point) as worker:
        assert worker.reaches()
        os.kill(server, how)
        worker.go_on()
        assert worker.end() == 0
    assert int(pid_file.read_text()) != server
    assert count_waiting(watched) == 0
    assert is_right(watched)
