"""How we open an SQLite file, and when its transactions begin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.errors import DatabaseUnavailableError

OPTIONS: Final[Mapping[str, Any]] = {"connect_args": {"timeout": 10.0}}


def existing_file(url: URL, create: bool) -> URL:
    """The same URL.

    Raises:
        DatabaseUnavailableError: SQLite would make an empty database of it, and `create` is False.
    """
    name = url.database or ":memory:"
    is_plain_file = name != ":memory:" and "uri" not in url.query and not url.host
    if is_plain_file and not create and not Path(name).is_file():
        raise DatabaseUnavailableError(f"there is no database file {name}")
    return url


def prepare_engine(engine: Engine) -> None:
    """Set up every new session, and begin its transactions ourselves."""
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)


@contextmanager
def read_snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads."""
    with engine.connect() as connection, connection.begin() as transaction:
        if not _is_in_transaction(connection):
            connection.exec_driver_sql("BEGIN")
        yield connection
        transaction.rollback()


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that has the right to write from its start."""
    with engine.connect() as connection, connection.begin():
        if _is_in_transaction(connection):
            connection.exec_driver_sql("COMMIT")  # nothing was done in it
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


def is_in_wal_mode(connection: Connection) -> bool:
    """Whether readers and the writer of this file leave each other alone."""
    return bool(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal")


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    # The driver's own idea of when a transaction begins misses reads and DDL.
    connection.isolation_level = None
    connection.text_factory = _readable_text
    connection.execute("PRAGMA foreign_keys = ON")
    # 64 MB: with SQLite's own 2 MB, writes to many indexes take twice the time.
    connection.execute("PRAGMA cache_size = -65536")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _readable_text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


def _is_in_transaction(connection: Connection) -> bool:
    return bool(getattr(connection.connection.dbapi_connection, "in_transaction", False))
