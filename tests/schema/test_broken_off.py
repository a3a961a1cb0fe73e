"""Migrations that end early where each statement is committed at once: the next attempt goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event, text

from db_dedup import Deduplicator
from db_dedup.records.names import Namespace
from db_dedup.schema.migrate import downgrade, upgrade
from tests.schema.conftest import is_current
from tests.schema.description import describe, everything
from tests.servers import Database

NAMESPACE = Namespace(None, "dedup_")


class PowerCutError(Exception):
    """The process ends before a statement."""


@contextmanager
def cut_before(engine: Engine, statement: int) -> Iterator[Iterator[int]]:
    """End the block before so many statements of DDL; what is left of the count tells whether it ended."""
    left = iter(range(statement, -1, -1))

    def cut(_connection: Connection, _cursor: Any, sql: str, *_: Any) -> None:
        if sql.lstrip().startswith(("ALTER", "CREATE", "DROP", "UPDATE")) and next(left) == 0:
            raise PowerCutError

    event.listen(engine, "before_cursor_execute", cut)
    try:
        yield left
    except PowerCutError:
        pass
    finally:
        event.remove(engine, "before_cursor_execute", cut)


def test_an_upgrade_that_broke_off_anywhere_goes_on(mariadb_database: Database) -> None:
    engine = mariadb_database.engine
    with engine.begin() as connection:
        upgrade(connection, NAMESPACE)
        whole = describe(connection, NAMESPACE)
    for cuts in range(99):
        with engine.begin() as connection:
            downgrade(connection, NAMESPACE, "0003")
        with cut_before(engine, cuts) as left, engine.begin() as connection:
            upgrade(connection, NAMESPACE)
        if next(left, None) is not None:  # it came to the end before the cut
            break
        with engine.begin() as connection:
            upgrade(connection, NAMESPACE)
            assert is_current(connection, NAMESPACE)
            assert describe(connection, NAMESPACE) == whole
    assert 20 < cuts < 98


def test_a_downgrade_that_broke_off_anywhere_goes_on(mariadb_database: Database) -> None:
    engine = mariadb_database.engine
    with engine.begin() as connection:
        before = everything(connection)
    for cuts in range(99):
        with engine.begin() as connection:
            upgrade(connection, NAMESPACE)
        with cut_before(engine, cuts) as left, engine.begin() as connection:
            downgrade(connection, NAMESPACE, "base")
        if next(left, None) is not None:
            break
        with engine.begin() as connection:
            downgrade(connection, NAMESPACE, "base")
            assert everything(connection) == before
    assert 20 < cuts < 98


def test_an_uninstallation_that_broke_off_anywhere_goes_on(mariadb_database: Database) -> None:
    engine = mariadb_database.engine
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE notes (id INT PRIMARY KEY, body VARCHAR(90))"))
        connection.execute(text("INSERT INTO notes VALUES (1, 'the same text'), (2, 'the same text')"))
        before = everything(connection)
    dedup = Deduplicator(engine, "notes", {"body": 1})
    for cuts in range(0, 99, 3):
        dedup.upgrade()
        dedup.scan()
        dedup.attach()
        with cut_before(engine, cuts) as left:
            dedup.database.uninstall()
        if next(left, None) is not None:
            break
        dedup.database.uninstall()
        with engine.begin() as connection:
            assert everything(connection) == before
    assert 20 < cuts < 98
