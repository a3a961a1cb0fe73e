"""Where our names go in each kind of database."""

import pytest

from db_dedup.records.names import Namespace
from tests.servers import Database


def namespace_in(database: Database, name: str) -> Namespace:
    """A namespace of that name: a schema on PostgreSQL, a prefix elsewhere."""
    return Namespace(name, "") if database.name == "postgresql" else Namespace(None, f"{name}_")


@pytest.fixture
def namespace(database: Database) -> Namespace:
    return namespace_in(database, "dedup")
