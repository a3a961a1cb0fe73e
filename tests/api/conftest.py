"""A scanned table in a SQLite file, which the tests of a module share and only read."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from db_dedup import Database, Deduplicator, Text, Value
from db_dedup.cli.demo import fill
from db_dedup.sample import Sample, generate_petitions

COLUMNS = {"title": Text(weight=2), "content": Text(), "region": Value()}


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(120, seed=5, duplicate_share=0.4)


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory, sample: Sample) -> Iterator[Deduplicator]:
    path = tmp_path_factory.mktemp("scanned") / "petitions.db"
    with closing(Database(f"sqlite:///{path}", create=True)) as database:
        with database.engine.begin() as connection:
            fill(connection, sample)
        yield scan(database)


def scan(database: Database) -> Deduplicator:
    dedup = Deduplicator(database, "petitions", COLUMNS, order="created_at")
    dedup.upgrade()
    dedup.scan()
    return dedup
