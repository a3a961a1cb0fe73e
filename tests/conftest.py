"""What every test can ask for: a fresh, empty database of each kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from tests.servers import (
    Database,
    Server,
    ServerUnavailableError,
    fresh_database,
    opened,
    start_mariadb,
    start_postgresql,
)

NOT_TESTED = "NOT TESTED: "

THOROUGH = (
    "bad_input/",
    "guest/test_grants.py",
    "health/test_metrics.py",
    "health/test_schedule.py",
    "interrupted/",
    "labels/test_histories.py",
    "triggers/test_property.py",
    "worker/",
)
"""What takes minutes: processes that are killed, servers that fail, long random histories. CI runs it all."""


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    yield from _server("postgresql", "DB_DEDUP_TEST_POSTGRESQL_URL", start_postgresql)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    yield from _server("mariadb", "DB_DEDUP_TEST_MYSQL_URL", start_mariadb)


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


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """The same test on each kind of database in turn."""
    found: Database = request.getfixturevalue(f"{request.param}_database")
    return found


def _server(name: str, variable: str, start: Callable[[], Server]) -> Iterator[Server]:
    url = os.environ.get(variable)
    try:
        server = Server.elsewhere(name, url) if url else start()
    except ServerUnavailableError as error:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"{NOT_TESTED}{name} ({error})")
    try:
        yield server
    finally:
        server.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to CI."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(THOROUGH):
            item.add_marker("thorough")


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
