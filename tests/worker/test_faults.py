"""Processes and connections that die in the middle of a batch, and workers that are told to stop."""

from __future__ import annotations

import os
import signal

import pytest
from sqlalchemy import text

from tests.servers import Database
from tests.sessions import end_sessions, other_sessions
from tests.worker.child import POINTS, Worker
from tests.worker.conftest import count_waiting, drain, is_right, write
from tests.worker.watched import Watched

SERVERS = pytest.mark.parametrize("database", ["postgresql", "mariadb", "mysql"], indirect=True)


def test_a_worker_killed_at_any_step_loses_nothing(database: Database, watched: Watched) -> None:
    for first, point in enumerate(POINTS):
        write(watched, range(100 * first, 100 * first + 4))
        waiting = count_waiting(watched)
        with Worker(database.url, watched.letters.name, "--drain", stop_at=point) as worker:
            assert worker.reaches()
            worker.process.kill()
            assert worker.end() == -signal.SIGKILL
        is_done = point == "after the commit"
        assert (count_waiting(watched) < waiting) is is_done, point
    drain(watched)
    assert is_right(watched)


@SERVERS
@pytest.mark.parametrize("point", ["before the changes are taken", "after the pairs are written"])
def test_a_worker_whose_connection_is_ended_connects_again(
    database: Database, watched: Watched, point: str
) -> None:
    write(watched, range(12))
    with Worker(database.url, watched.letters.name, "--drain", "--batch", "5", stop_at=point) as worker:
        assert worker.reaches()
        end_sessions(database)
        worker.go_on()
        assert worker.end() == 0
    assert count_waiting(watched) == 0
    assert is_right(watched)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_worker_outlives_a_crash_of_the_server(database: Database, watched: Watched) -> None:
    write(watched, range(12))
    database.engine.dispose()
    with Worker(
        database.url, watched.letters.name, "--drain", stop_at="after the pairs are written"
    ) as worker:
        assert worker.reaches()
        session, *_ = other_sessions(database.engine)
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("CHECKPOINT"))  # our private server does not wait for its log
        database.engine.dispose()
        os.kill(session, signal.SIGKILL)  # the whole server then starts anew, from its log
        worker.go_on()
        assert worker.end() == 0
    assert is_right(watched)


def test_a_worker_told_to_stop_finishes_its_batch(database: Database, watched: Watched) -> None:
    write(watched, range(9))
    arguments = [watched.letters.name, "--batch", "3"]
    with Worker(database.url, *arguments, stop_at="after the pairs are written") as worker:
        assert worker.reaches()
        worker.process.terminate()
        worker.go_on()
        assert worker.end() == 0
    assert count_waiting(watched) == 6
    drain(watched)
    assert is_right(watched)
