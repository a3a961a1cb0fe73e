"""A scanned and attached table of petitions, and a settings file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from db_dedup import Deduplicator, Settings
from db_dedup.sample import Sample, generate_petitions
from tests.cli.conftest import folder, write_settings
from tests.scan.conftest import fill_database
from tests.servers import Database

__all__ = ["folder"]

TOO_SHORT = "UPDATE petitions SET title = '水', content = '' WHERE id <= 3"


@pytest.fixture(scope="session")
def sample() -> Sample:
    return generate_petitions(150, seed=3, duplicate_share=0.5)


@pytest.fixture
def dedup(database: Database, sample: Sample, folder: Path) -> Deduplicator:
    """Scanned, then attached, in each kind of database; three rows have too little text."""
    assert folder.is_dir()
    fill_database(database.engine, sample)
    do(database, TOO_SHORT)
    write_settings(database)
    found = Deduplicator(database.engine, Settings.from_file(Path("dedup.toml")).watched("petitions"))
    found.upgrade()
    found.scan()
    found.attach()
    return found


def do(database: Database, *statements: str) -> None:
    """Each in a transaction of its own."""
    for statement in statements:
        with database.engine.begin() as connection:
            if database.name == "sqlite":  # it refuses a trigger by the catalogue that it has read last
                connection.execute(text("SELECT count(*) FROM sqlite_master"))
            connection.execute(text(statement))


def drop_a_trigger(database: Database) -> None:
    """The one that sees new rows."""
    on_table = " ON petitions" if database.name == "postgresql" else ""
    do(database, f"DROP TRIGGER dedup_petitions_1_insert{on_table}")
