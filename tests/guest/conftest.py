"""A house that is not ours: what the user's database lets us do, and what it must not notice."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from db_dedup.sample import Sample, generate_petitions
from tests.cli.conftest import folder  # noqa: F401
from tests.servers import Database, Server, fresh_database, opened


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(80, seed=11, duplicate_share=0.5)


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Database]:
    """A second SQLite file, beside whatever database the test has."""
    with opened("sqlite", URL.create("sqlite", database=str(tmp_path / "store.db"))) as database:
        yield database


@pytest.fixture
def postgresql_store(postgresql_server: Server) -> Iterator[Database]:
    with fresh_database(postgresql_server) as database:
        yield database


@pytest.fixture
def mariadb_store(mariadb_server: Server) -> Iterator[Database]:
    with fresh_database(mariadb_server) as database:
        yield database


@pytest.fixture
def mysql_store(mysql_server: Server) -> Iterator[Database]:
    with fresh_database(mysql_server) as database:
        yield database
