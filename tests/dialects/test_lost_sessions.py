"""Errors of a session that the server has ended."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects import dialect_for
from db_dedup.errors import DatabaseUnavailableError, StatementEndedError
from tests.dialects.test_error_translation import fault, run_all
from tests.servers import Database


def test_connection_that_was_cut(postgresql_database: Database) -> None:
    found = fault(postgresql_database.engine, "SELECT pg_terminate_backend(pg_backend_pid())")
    assert type(found) is StatementEndedError
    assert found.is_transient


def test_session_that_was_idle_for_longer_than_the_server_allows(postgresql_database: Database) -> None:
    engine = postgresql_database.engine
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as idle:
        session = idle.scalar(text("SELECT pg_backend_pid()"))
        idle.execute(text("SET idle_session_timeout = 10"))
        wait_for_end(engine, session)
        with pytest.raises(SQLAlchemyError) as caught:
            idle.execute(text("SELECT 1"))
    found = dialect_for(engine).translate_error(caught.value)
    assert type(found) is StatementEndedError
    assert "idle_session_timeout" in str(found)


def wait_for_end(engine: Engine, session: int) -> None:
    """Wait until the server has ended a session."""
    there = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :session")
    with engine.connect() as connection:
        while connection.scalar(there, {"session": session}):
            connection.rollback()


def test_connection_that_was_cut_while_a_setting_of_its_session_was_changed(
    mariadb_database: Database,
) -> None:
    """The statement that puts the setting back then fails, too, and hides the first error."""
    engine = mariadb_database.engine
    dialect = dialect_for(engine)

    def cut() -> None:
        with engine.connect() as connection, dialect.short_lock_wait(connection):
            session = connection.scalar(text("SELECT CONNECTION_ID()"))
            run_all(engine, [f"KILL {session}"])
            connection.execute(text("SELECT 1"))

    with pytest.raises(SQLAlchemyError) as caught:
        cut()
    assert type(dialect.translate_error(caught.value)) is DatabaseUnavailableError
