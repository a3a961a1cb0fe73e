"""List the sessions of a server, and end them as an administrator does."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from tests.servers import Database

OTHERS_ON_POSTGRESQL = "SELECT pid FROM pg_stat_activity WHERE datname = :name AND pid <> pg_backend_pid()"
OTHERS_ON_MARIADB = "SELECT id FROM information_schema.processlist WHERE db = :name AND id <> CONNECTION_ID()"
UNKNOWN_SESSION = 1094  # MariaDB's and MySQL's number of this error


def other_sessions(engine: Engine) -> list[int]:
    """The sessions of this database but for the one that asks."""
    is_postgresql = engine.dialect.name == "postgresql"
    query = text(OTHERS_ON_POSTGRESQL if is_postgresql else OTHERS_ON_MARIADB)
    with engine.connect() as connection:
        return list(connection.execute(query, {"name": engine.url.database}).scalars())


def end_session(connection: Connection, session: int) -> None:
    """End a session of the connection's server; one that is gone already is no error.

    Servers list a closed session for a moment still. PostgreSQL then only warns.
    """
    is_postgresql = connection.dialect.name == "postgresql"
    try:
        connection.execute(
            text(f"SELECT pg_terminate_backend({session})" if is_postgresql else f"KILL {session}")
        )
    except OperationalError as error:
        if is_postgresql or error.orig is None or error.orig.args[0] != UNKNOWN_SESSION:
            raise


def end_sessions(database: Database) -> None:
    """End every session of a database but our own."""
    database.engine.dispose()
    engine = create_engine(database.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    sessions = other_sessions(engine)
    assert sessions
    with engine.connect() as connection:
        for session in sessions:
            end_session(connection, session)
