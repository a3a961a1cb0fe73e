"""Whose session of Spark a scan uses, and who stops it; no Spark is started."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from db_dedup.config import EngineSettings
from db_dedup.engines.spark import failures, session
from db_dedup.errors import DedupError

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


def test_the_program_gets_its_handler_of_interrupts_back(
    started: list[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark replaces it when it makes a session, and never puts it back."""
    own = signal.getsignal(signal.SIGINT)
    start = session._started

    def start_as_pyspark(*arguments: Any) -> Any:
        signal.signal(signal.SIGINT, lambda *_: None)
        return start(*arguments)

    monkeypatch.setattr(session, "_started", start_as_pyspark)
    try:
        with session.open_session(SETTINGS):
            assert signal.getsignal(signal.SIGINT) is not own
        assert signal.getsignal(signal.SIGINT) is own
        with session.open_session(SETTINGS):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN, "set by the program meanwhile"
        signal.signal(signal.SIGINT, own)
        with ExitStack() as opened:
            opened.enter_context(session.open_session(SETTINGS))
            thread = Thread(target=opened.close)
            thread.start()
            thread.join()
        assert started[-1].is_stopped, "the handler of another thread cannot be put back"
    finally:
        signal.signal(signal.SIGINT, own)


JAVA = """An error occurred while calling o58.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.3 (host executor 1): {told}
\tat org.apache.spark.scheduler.Task.run(Task.scala:147)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)
"""
LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited"
VALUE = 'org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "secret text"'
PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "comparing.py", line 73, in confirm
    except KeyError: raise pa.ArrowInvalid("offset overflow")
                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
pyarrow.lib.ArrowInvalid: offset overflow
"""
NESTED = (
    f"org.apache.spark.api.python.PythonException: {PYTHON.split(chr(10), 1)[1]}\tat org.apache.spark.Some"
)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (JAVA.format(told=LOST), f"(host executor 1): {LOST}"),
        (f"{JAVA.format(told=LOST)}Caused by: java.io.IOException: no space left", "no space left"),
        (PYTHON, "pyarrow.lib.ArrowInvalid: offset overflow"),
        (JAVA.format(told=NESTED), "pyarrow.lib.ArrowInvalid: offset overflow"),
        ("An error occurred while calling o58.count", "An error occurred while calling o58.count"),
        (JAVA.format(told=VALUE), "org.postgresql.util.PSQLException"),
        (f"{JAVA.format(told=VALUE)}Caused by: {VALUE}", "org.postgresql.util.PSQLException"),
    ],
)
def test_an_error_of_spark_names_its_reason_and_no_value(told: str, reason: str) -> None:
    class Py4JJavaError(Exception):
        __module__ = "py4j.protocol"

    with pytest.raises(DedupError) as caught, failures.translate_spark_errors():
        raise Py4JJavaError(told)
    message = str(caught.value)
    assert message.startswith("Spark failed: ")
    assert message.endswith(reason)
    assert "\n" not in message


def test_a_session_of_the_program_goes_on_as_it_was(started: list[FakeSession]) -> None:
    started.append(FakeSession())
    with session.open_session(SETTINGS) as opened:
        opened.spark.conf.set("spark.sql.shuffle.partitions", "64")
    assert len(started) == 1
    assert not started[0].is_stopped
    assert started[0].settings["spark.sql.shuffle.partitions"] == "7"
