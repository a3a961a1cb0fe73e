"""Whose session of Spark a scan uses, and who stops it; no Spark is started."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from db_dedup.config import EngineSettings
from db_dedup.engines.spark import session

pytestmark = pytest.mark.usefixtures("pyspark")
SETTINGS = EngineSettings(name="spark", master="local[1]")


class FakeSession:
    """What a session answers to questions about itself."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.settings = {"spark.sql.shuffle.partitions": "7"}
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__)

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[FakeSession]:
    """The sessions that were started; the process has the last one until it is stopped."""
    every: list[FakeSession] = []

    def start(*_: Any) -> FakeSession:
        every.append(FakeSession())
        return every[-1]

    def find(_: Any) -> FakeSession | None:
        return next((each for each in every if not each.is_stopped), None)

    monkeypatch.setattr(session, "_started", start)
    monkeypatch.setattr(session, "_session_of_process", find)
    monkeypatch.setattr(session.Session, "check_versions", lambda _: None)
    return every


def test_scans_at_a_time_share_a_session_that_the_last_one_stops(started: list[FakeSession]) -> None:
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(session.open_session(SETTINGS))
        second.enter_context(session.open_session(SETTINGS))
        first.close()
        assert [each.is_stopped for each in started] == [False]
    assert [each.is_stopped for each in started] == [True]
    with session.open_session(SETTINGS):
        assert len(started) == 2
    assert all(each.is_stopped for each in started)


def test_a_session_of_the_program_goes_on_as_it_was(started: list[FakeSession]) -> None:
    started.append(FakeSession())
    with session.open_session(SETTINGS) as opened:
        opened.spark.conf.set("spark.sql.shuffle.partitions", "64")
    assert len(started) == 1
    assert not started[0].is_stopped
    assert started[0].settings["spark.sql.shuffle.partitions"] == "7"
