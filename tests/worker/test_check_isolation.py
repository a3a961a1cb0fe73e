"""A check that blocks sees what others have committed by then, whatever isolation level was asked for, and
however; or it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, func, select, text
from sqlalchemy.orm import Session

from db_dedup.engines.embedded.lookup import EmbeddedLookup
from db_dedup.engines.embedded.queued import Queued
from db_dedup.errors import ConfigError, DedupError
from tests.conftest import not_tested
from tests.servers import Database
from tests.worker.conftest import body, drain, write
from tests.worker.test_blocking_check import LEVELS, NEW, row
from tests.worker.watched import Watched

Begin = Callable[[Database, str], Any]
"""A transaction of an application at an isolation level."""


@contextmanager
def by_engine(database: Database, level: str) -> Iterator[Connection]:
    engine = create_engine(database.url, isolation_level=level)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@contextmanager
def by_session(database: Database, level: str) -> Iterator[Connection]:
    with Session(database.engine) as session:
        yield session.connection(execution_options={"isolation_level": level})


def by_statements(*statements: str) -> Begin:
    """Statements of the application's own, the last of which begins the transaction where one must."""

    @contextmanager
    def begin(database: Database, level: str) -> Iterator[Connection]:
        engine = create_engine(database.url)
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement.format(level=level, name=level.replace(" ", "-"))))
            yield connection
        engine.dispose()

    return begin


WAYS_ON_BOTH = {"engine": by_engine, "session": by_session}
WAYS_ON_POSTGRESQL: dict[str, Begin] = WAYS_ON_BOTH | {
    "one transaction": by_statements("SET TRANSACTION ISOLATION LEVEL {level}"),
    "transaction_isolation": by_statements("SET LOCAL transaction_isolation = '{level}'"),
    "the session's default": by_statements(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}", "COMMIT", "BEGIN"
    ),
}
WAYS_ON_MARIADB: dict[str, Begin] = WAYS_ON_BOTH | {
    "one transaction": by_statements("SET TRANSACTION ISOLATION LEVEL {level}", "START TRANSACTION"),
    "tx_isolation": by_statements("SET SESSION tx_isolation = '{name}'", "START TRANSACTION"),
    "a snapshot at once": by_statements(
        "SET TRANSACTION ISOLATION LEVEL {level}", "START TRANSACTION WITH CONSISTENT SNAPSHOT"
    ),
    "another level for the session": by_statements(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TRANSACTION ISOLATION LEVEL {level}",
        "START TRANSACTION",
    ),
}


def after_a_writer_who_does_not_ask(watched: Watched, connection: Connection) -> list[str]:
    """What a check finds of a row that was committed after the application's transaction had first read."""
    connection.execute(select(func.count()).select_from(watched.letters))
    write(watched, [NEW])
    return [match.row_key for match in watched.dedup.check(row(NEW), connection, block=True)]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("way", WAYS_ON_MARIADB)
def test_mariadb_sees_what_was_committed_after_the_snapshot(
    database: Database, watched: Watched, way: str, level: str
) -> None:
    with WAYS_ON_MARIADB[way](database, level) as connection:
        assert after_a_writer_who_does_not_ask(watched, connection) == [str(NEW)]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_mariadb_sees_a_fingerprint_that_the_worker_stored_after_the_snapshot(
    database: Database, watched: Watched
) -> None:
    begin = WAYS_ON_MARIADB["another level for the session"]
    with begin(database, "REPEATABLE READ") as connection:
        connection.execute(select(func.count()).select_from(watched.letters))
        write(watched, [NEW])
        drain(watched)
        (match,) = watched.dedup.check(row(NEW), connection, block=True)
        assert match.row_key == str(NEW)


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_mariadb_with_snapshot_isolation_asks_to_begin_the_transaction_again(
    database: Database, watched: Watched
) -> None:
    """The default from MariaDB 11.6 on: what was written since the snapshot cannot be locked."""
    snapshots = text("SET SESSION innodb_snapshot_isolation = ON")
    with by_engine(database, "REPEATABLE READ") as connection:
        if not connection.execute(text("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")).all():
            not_tested("innodb_snapshot_isolation (this MariaDB does not have it)")
        connection.execute(snapshots)
        connection.execute(select(func.count()).select_from(watched.letters))
        write(watched, [NEW])
        drain(watched)
        with pytest.raises(DedupError, match="begin the transaction again") as caught:
            watched.dedup.check(row(NEW), connection, block=True)
        assert caught.value.is_transient
    with by_engine(database, "REPEATABLE READ") as connection:
        connection.execute(snapshots)
        (match,) = watched.dedup.check(row(NEW), connection, block=True)
        assert match.row_key == str(NEW)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("way", WAYS_ON_POSTGRESQL)
def test_postgresql_refuses_a_snapshot_of_the_whole_transaction(
    database: Database, watched: Watched, way: str
) -> None:
    for level in ("REPEATABLE READ", "SERIALIZABLE"):
        with (
            WAYS_ON_POSTGRESQL[way](database, level) as connection,
            pytest.raises(ConfigError, match=rf"{level}.*isolation_level=\"READ COMMITTED\""),
        ):
            watched.dedup.check(row(NEW), connection, block=True)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("level", ["READ COMMITTED", "READ UNCOMMITTED"])
@pytest.mark.parametrize("way", WAYS_ON_POSTGRESQL)
def test_postgresql_sees_what_was_committed_by_then(
    database: Database, watched: Watched, way: str, level: str
) -> None:
    with WAYS_ON_POSTGRESQL[way](database, level) as connection:
        assert after_a_writer_who_does_not_ask(watched, connection) == [str(NEW)]


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_autocommit_is_refused(database: Database, watched: Watched) -> None:
    with (
        by_engine(database, "AUTOCOMMIT") as connection,
        pytest.raises(ConfigError, match="without AUTOCOMMIT"),
    ):
        watched.dedup.check(row(NEW), connection, block=True)


BESIDE_WRITERS = pytest.mark.parametrize(
    ("database", "level"), [each for each in LEVELS if each[0] != "sqlite"], indirect=["database"]
)
"""In SQLite nobody writes beside a check that blocks."""


@BESIDE_WRITERS
@pytest.mark.parametrize(
    ("statement", "found"),
    [("UPDATE letters_0 SET body = :body WHERE id = 2", "2"), ("DELETE FROM letters_0 WHERE id = 2", "11")],
    ids=["another text", "its exact duplicate stays"],
)
def test_a_candidate_is_written_after_the_queue_was_read(
    database: Database,
    watched: Watched,
    level: str,
    statement: str,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MariaDB and MySQL wait for the writer then: its row is locked."""
    read_queued = EmbeddedLookup.read_queued
    write(watched, [2, 11] if found == "11" else [2])
    drain(watched)
    with database.engine.connect() as writer:
        writer.execute(text(statement), {"body": body(8)} if ":body" in statement else {})

        def read_before_the_commit(self: EmbeddedLookup, *given: Any) -> Queued:
            queued = read_queued(self, *given)
            writer.commit()
            return queued

        monkeypatch.setattr(EmbeddedLookup, "read_queued", read_before_the_commit)
        with by_engine(database, level) as connection:
            matches = watched.dedup.check(row(NEW), connection, block=True)
    assert [match.row_key for match in matches] == [found]
