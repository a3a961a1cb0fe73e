"""A guarded model."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session, sessionmaker

from db_dedup import Deduplicator
from tests.orm.office import make_office, own_sessions
from tests.servers import Database


@pytest.fixture
def dedup(database: Database) -> Deduplicator:
    return make_office(database.engine)


@pytest.fixture
def sessions(database: Database, dedup: Deduplicator) -> sessionmaker[Session]:
    del dedup  # it makes the tables
    return own_sessions(database.engine)
