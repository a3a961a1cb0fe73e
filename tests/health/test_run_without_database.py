"""`db-dedup run` before its database is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import URL, make_url, text

from db_dedup import Deduplicator
from tests.health.process import background
from tests.health.test_run import WAITING, WORKER_LEADS, lines_until
from tests.servers import Database

pytestmark = pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)


@pytest.fixture
def later(database: Database) -> Iterator[URL]:
    """A database on the same server, which a test may make."""
    url = make_url(database.url)
    url = url.set(database=f"{url.database}_later")
    yield url
    in_server(database, f"DROP DATABASE IF EXISTS {url.database}")


def in_server(database: Database, statement: str) -> None:
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))


def test_it_names_the_fault_and_leads_as_soon_as_it_can(
    dedup: Deduplicator, database: Database, later: URL
) -> None:
    assert dedup.name == "petitions"
    with background("run", "--url", later.render_as_string(hide_password=False)) as found:
        said = lines_until(found, "waiting: ")[-1]
        assert said != WAITING
        assert str(later.database) in said
        assert said.endswith("; trying again\n")
        in_server(database, f"CREATE DATABASE {later.database}")
        assert lines_until(found, "leading")[-1] == WORKER_LEADS
        assert found.end() == 0
