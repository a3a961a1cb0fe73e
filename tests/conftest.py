"""What every test can ask for: a fresh, empty database of each kind."""

from __future__ import annotations

import importlib.util
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import URL, Engine, event

from db_dedup.flow.compare.kernels import is_rule_missing
from tests.servers import (
    Database,
    Server,
    ServerUnavailableError,
    fresh_database,
    opened,
    other_plans,
    start_mariadb,
    start_mysql,
    start_postgresql,
)
from tests.thorough import MYSQL, more_on_servers, of_twins, others_out_of_turn, out_of_turn
from tests.thorough_list import THOROUGH

# A job in the background ignores Ctrl-C, one under nohup SIGHUP, and so would all that they start; the tests
# send both to some.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Of whoever runs the tests: printed tables would be as wide as that terminal.
os.environ.pop("COLUMNS", None)

NOT_TESTED = "NOT TESTED: "

# How long a test takes is no part of what it proves.
settings.register_profile("timeless", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("timeless")


@event.listens_for(Engine, "connect")
def set_up_sqlite(connection: object, _: object) -> None:
    """SQLite waits for no disk: like the servers' data, nothing here must outlive the machine."""
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error):  # it is not a database, or locked: the test will see
            connection.execute("PRAGMA synchronous = OFF").close()
            if other_plans.ARE_ASKED:
                connection.execute("PRAGMA reverse_unordered_selects = ON").close()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    yield from _server("postgresql", start_postgresql)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    yield from _server("mariadb", start_mariadb)


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    yield from _server("mysql", start_mysql)


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    url = URL.create("sqlite", database=str(tmp_path / "database.db"))
    with opened("sqlite", url) as database:
        yield database


@pytest.fixture
def postgresql_database(postgresql_server: Server) -> Iterator[Database]:
    with fresh_database(postgresql_server) as database:
        yield database


@pytest.fixture
def mariadb_database(mariadb_server: Server) -> Iterator[Database]:
    with fresh_database(mariadb_server) as database:
        yield database


@pytest.fixture
def mysql_database(mysql_server: Server) -> Iterator[Database]:
    with fresh_database(mysql_server) as database:
        yield database


@pytest.fixture(params=["mariadb", MYSQL])
def mariadb_or_mysql(request: pytest.FixtureRequest) -> Database:
    """The same test on both, for what they have in common and others have not."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", MYSQL])
def database(request: pytest.FixtureRequest) -> Database:
    """The same test on each kind of database in turn."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def not_tested(reason: str) -> NoReturn:
    """Fail in CI, and elsewhere skip the test and say so at the end of the run.

    Args:
        reason: what is not tested, and in brackets what is missing.
    """
    give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    give_up(f"{NOT_TESTED}{reason}")


@pytest.fixture
def pyspark() -> None:
    """For tests that need PySpark; a thorough run installs it."""
    if importlib.util.find_spec("pyspark") is None:
        not_tested('Spark (no pyspark: pip install "db-dedup[spark]")')


def _server(name: str, start: Callable[[], Server]) -> Iterator[Server]:
    url = os.environ.get(f"DB_DEDUP_TEST_{name.upper()}_URL")
    return private_server(name, (lambda: Server.elsewhere(name, url)) if url else start)


def private_server(name: str, start: Callable[[], Server]) -> Iterator[Server]:
    """What a fixture yields: a server, stopped at the end; without one its tests are skipped aloud."""
    try:
        server = start()
    except ServerUnavailableError as error:
        not_tested(f"{name} ({error})")
    try:
        yield server
    finally:
        server.stop()


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile the kernels of a scan before the processes of the tests start: each would compile all."""
    if is_rule_missing():
        command = [str(Path(sys.executable).with_name("db-dedup")), "demo", "--rows", "50"]
        with TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if done.returncode and reporter is not None:
            reporter.write_line(f"The demo, which compiles the kernels, failed:\n{done.stderr}", red=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of which `make test` runs no test: to import them takes each process seconds."""
    if config.option.markexpr != "not thorough":
        return None
    name = collection_path.relative_to(Path(__file__).parent).as_posix()
    return name.startswith(tuple(entry for entry in THOROUGH if "::" not in entry)) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to CI, and leave out what a test on another server proves."""
    is_every = os.environ.get("DB_DEDUP_TEST_EVERY") == "true"
    if not is_every:
        _leave_out(of_twins(map(_name, items)), config, items)
    names = map(_name, items)
    spared = set(more_on_servers(name for name in names if not name.startswith(THOROUGH)))
    for item in items:
        if _name(item).startswith(THOROUGH) or _name(item) in spared:
            item.add_marker("thorough")
    if not is_every:
        thorough = [_name(item) for item in items if item.get_closest_marker("thorough")]
        turn = os.environ.get("DB_DEDUP_TEST_TURN")
        _leave_out(out_of_turn(thorough, int(turn or 0)), config, items)
        if turn is not None:  # in CI: who runs some tests by hand has chosen them
            _leave_out(others_out_of_turn(thorough, int(turn)), config, items)


def _leave_out(names: Iterable[str], config: pytest.Config, items: list[pytest.Item]) -> None:
    gone = set(names)
    if left_out := [item for item in items if _name(item) in gone]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _name(item) not in gone]


def _name(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last of all, on one line for each, which databases could not be had."""
    yield
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    }
    for reason in sorted(reason for reason in reasons if reason.startswith(NOT_TESTED)):
        terminalreporter.write_line(reason, red=True, bold=True)


_internal_errors: list[str] = []


def pytest_internalerror(excrepr: object) -> None:
    """Keep the errors of pytest's own: the first is the reason for the others."""
    _internal_errors.append(str(excrepr))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """After an internal error say last what came first, and what failed: pytest then has no summary."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if _internal_errors and reporter is not None:
        for report in [*reporter.stats.get("failed", []), *reporter.stats.get("error", [])]:
            reporter.write_line(f"FAILED {report.nodeid}: {report.longreprtext[-500:]}")
        reporter.write_line(f"the first internal error ended with: {_internal_errors[0][-1500:]}", red=True)
