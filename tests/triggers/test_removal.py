"""Triggers that were made by hand, or that nobody watches any more: none is left behind to break a write."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, delete, inspect, make_url, text

from db_dedup import Database as DedupDatabase
from db_dedup import Deduplicator
from db_dedup.errors import DatabaseError, NotScannedError
from tests.dialects.tables import run
from tests.guest.readers import account
from tests.servers import Database
from tests.triggers.conftest import PETITIONS, changes, petitions
from tests.triggers.test_attachment import triggers

INSERT = "INSERT INTO petitions VALUES (1, 'a', 'x', '1', 'new')"


def by_hand(database: Database) -> Deduplicator:
    """A table with triggers that somebody made from what `sql triggers` prints."""
    run(database, PETITIONS)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    dedup.scan()
    with database.engine.begin() as connection:
        for statement in dedup.trigger_statements():
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    return dedup


def test_uninstall_takes_triggers_that_were_made_by_hand(database: Database) -> None:
    dedup = by_hand(database)
    there = triggers(database)
    assert there
    assert set(there) < set(dedup.database.installed_names())
    assert set(there) < set(dedup.database.uninstall())
    assert triggers(database) == []
    run(database, INSERT)


def test_uninstall_takes_them_from_a_table_that_was_renamed(database: Database) -> None:
    dedup = by_hand(database)
    there = triggers(database)
    run(database, "ALTER TABLE petitions RENAME TO letters")
    assert set(there) < set(dedup.database.installed_names())
    dedup.database.uninstall()
    assert triggers(database) == []
    run(database, INSERT.replace("petitions", "letters"))


def test_uninstall_takes_no_harm_from_a_table_that_is_gone(database: Database) -> None:
    dedup = by_hand(database)
    run(database, "DROP TABLE petitions" + (" CASCADE" if database.name == "postgresql" else ""))
    dedup.database.uninstall()
    assert dedup.database.installed_names() == []


def test_detach_and_downgrade_take_them_too(database: Database) -> None:
    dedup = by_hand(database)
    dedup.detach()
    assert triggers(database) == []
    for statement in dedup.trigger_statements():
        run(database, statement.replace(":=", r"\:=").replace("%:", r"%\:"))
    dedup.database.downgrade("base")
    assert triggers(database) == []
    run(database, INSERT)


def test_a_trigger_on_a_table_that_nobody_watches_stops_it(database: Database) -> None:
    """Its table's settings are gone, so that nothing names it but the catalogue."""
    dedup = petitions(database)
    there = triggers(database)
    watched = dedup.database.tables.watched_table
    with database.engine.begin() as connection:
        connection.execute(delete(watched))
    for call in (dedup.database.installed_names, dedup.database.uninstall):
        with pytest.raises(DatabaseError, match=r"'dedup_petitions_1_\w+' on 'petitions'.*DROP TRIGGER"):
            call()
    assert triggers(database) == there
    with database.engine.connect() as connection:
        assert inspect(connection).has_table(watched.name, watched.schema)
    statement = "DROP TRIGGER {}" + (" ON petitions" if database.name == "postgresql" else "")
    run(database, *map(statement.format, there))
    dedup.database.uninstall()
    run(database, INSERT)


def test_detach_names_a_trigger_of_another_number_on_the_table(database: Database) -> None:
    dedup = petitions(database)
    there = triggers(database)
    watched = dedup.database.tables.watched_table
    with database.engine.begin() as connection:
        connection.execute(watched.update().values(id=7))
    with pytest.raises(DatabaseError, match=r"'dedup_petitions_1_\w+' on 'petitions'.*DROP TRIGGER"):
        dedup.detach()
    assert triggers(database) == there


def test_a_trigger_of_the_user_s_own_that_writes_into_our_queue_is_theirs_to_drop(
    sqlite_database: Database,
) -> None:
    dedup = petitions(sqlite_database)
    run(
        sqlite_database,
        "CREATE TABLE notes (id INTEGER PRIMARY KEY)",
        'CREATE TRIGGER mine AFTER INSERT ON notes BEGIN DELETE FROM "dedup_change"; END',
    )
    dedup.detach()
    with pytest.raises(DatabaseError, match="'mine' on 'notes'"):
        dedup.database.uninstall()


def test_without_a_number_there_are_no_statements_to_run_by_hand(database: Database) -> None:
    """They would queue for a table that no worker knows."""
    run(database, PETITIONS)
    dedup = Deduplicator(database.engine, "petitions", {"body": 1})
    dedup.upgrade()
    with pytest.raises(NotScannedError, match=r"'petitions' is not watched yet.*db-dedup scan petitions"):
        dedup.trigger_statements()


def test_postgresql_without_the_right_nothing_is_dropped(postgresql_database: Database) -> None:
    petitions(postgresql_database)
    there = triggers(postgresql_database)
    run(
        postgresql_database,
        "CREATE ROLE dedup_test_other LOGIN",
        "GRANT ALL ON SCHEMA dedup TO dedup_test_other",
        "GRANT ALL ON ALL TABLES IN SCHEMA dedup TO dedup_test_other",
    )
    url = make_url(postgresql_database.url).set(username="dedup_test_other")
    other = DedupDatabase(url)
    try:
        with pytest.raises(DatabaseError, match=r"must be owner of function .*DROP FUNCTION IF EXISTS"):
            other.uninstall()
        with pytest.raises(DatabaseError, match=r"must be owner of function .*DROP FUNCTION IF EXISTS"):
            Deduplicator(other, "petitions").detach()
    finally:
        other.close()
        run(postgresql_database, "DROP OWNED BY dedup_test_other", "DROP ROLE dedup_test_other")
    assert triggers(postgresql_database) == there


@pytest.mark.parametrize("rights", ["SELECT, DELETE", "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP"])
def test_mariadb_without_the_right_nothing_is_dropped(mariadb_database: Database, rights: str) -> None:
    """Each DROP is committed at once: of two tables the first would have lost its triggers."""
    dedup = by_hand(mariadb_database)
    there = triggers(mariadb_database)
    with account(mariadb_database, "secret") as url:
        name = make_url(url).database
        run(
            mariadb_database,
            f"REVOKE ALL PRIVILEGES ON {name}.* FROM dedup_test_clerk",
            f"GRANT {rights} ON {name}.* TO dedup_test_clerk",
        )
        clerk = DedupDatabase(url)
        for call in (clerk.uninstall, clerk.installed_names, Deduplicator(clerk, "petitions").detach):
            with pytest.raises(DatabaseError, match=r"GRANT TRIGGER ON petitions"):
                call()
        clerk.close()
    assert triggers(mariadb_database) == there
    run(mariadb_database, INSERT)
    assert changes(dedup) == [("1", "I")]


def test_mariadb_uninstall_by_an_engine_of_the_caller_s(mariadb_database: Database) -> None:
    by_hand(mariadb_database)
    engine = create_engine(mariadb_database.url)
    DedupDatabase(engine).uninstall()
    with engine.begin() as connection:
        connection.execute(text(INSERT))
    engine.dispose()
