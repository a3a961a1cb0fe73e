"""A server that stores the names of tables in lower case, as MySQL and MariaDB do on Windows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from db_dedup.config import watched_table
from db_dedup.records.names import Namespace
from db_dedup.store.inspection import inspect_table, list_relations
from tests.conftest import private_server
from tests.dialects.tables import run
from tests.schema.description import everything
from tests.servers import Database, Server, fresh_database, start_mariadb
from tests.triggers.conftest import drain


@pytest.fixture(scope="module")
def lowering_server() -> Iterator[Server]:
    yield from private_server("mariadb", lambda: start_mariadb({"lower-case-table-names": "1"}))


@pytest.fixture
def database(lowering_server: Server) -> Iterator[Database]:
    with fresh_database(lowering_server) as database:
        yield database


def test_names_in_upper_case(database: Database) -> None:
    run(
        database,
        "CREATE TABLE Petitions (Id INT PRIMARY KEY, Body TEXT)",
        "INSERT INTO Petitions VALUES (1, 'the street lamp is broken'), (2, 'the street lamp is broken')",
        "CREATE VIEW OpenPetitions AS SELECT * FROM Petitions",
    )
    with database.engine.connect() as connection:
        before = everything(connection)
    ours = OurDatabase(database.engine, prefix="Dedup_")
    dedup = Deduplicator(ours, watched_table("Petitions", {"columns": {"Body": 1}}))
    for _ in range(2):
        dedup.upgrade()
        dedup.scan()
        dedup.attach()
    run(database, "INSERT INTO Petitions VALUES (3, 'the street lamp is broken')")
    drain(dedup)
    assert dedup.verify().is_right
    with database.engine.connect() as connection:
        assert len(connection.execute(text("SELECT * FROM Dedup_duplicates_of_Petitions")).all()) == 3
        assert inspect_table(connection, "OpenPetitions").is_view
        found = list_relations(connection, ours.dialect, Namespace(None, "Dedup_"))
        assert (found.tables, found.views) == (["petitions"], ["openpetitions"])
    names = ours.installed_names()
    assert ours.uninstall() == names
    with database.engine.connect() as connection:
        assert everything(connection) == before
