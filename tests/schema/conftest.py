"""Where our names go in each kind of database."""

import pytest
from sqlalchemy import Connection

from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import current_revision
from db_dedup.schema.revisions import head_revision
from tests.servers import Database


def namespace_in(database: Database, name: str) -> Namespace:
    """A namespace of that name: a schema on PostgreSQL, a prefix elsewhere."""
    return Namespace(name, "") if database.name == "postgresql" else Namespace(None, f"{name}_")


@pytest.fixture
def namespace(database: Database) -> Namespace:
    return namespace_in(database, "dedup")


def is_current(connection: Connection, namespace: Namespace) -> bool:
    """Whether our tables are of the newest revision."""
    return current_revision(connection, namespace) == head_revision()
