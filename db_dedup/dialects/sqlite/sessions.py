"""How we open an SQLite file, and when its transactions begin."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, Executable, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.turns import no_transaction
from db_dedup.errors import ConfigError, DatabaseUnavailableError

OPTIONS: Final[Mapping[str, Any]] = {"connect_args": {"timeout": 10.0}}


def existing_file(url: URL, create: bool) -> URL:
    """The same URL; one with `uri` opens a file that is there, unless it says otherwise.

    Raises:
        ConfigError: it names no file.
        DatabaseUnavailableError: SQLite would make an empty database of it, and `create` is False.
    """
    name = url.database or ":memory:"
    if is_in_memory(url):
        raise ConfigError("a database in memory has no tables to look at: write sqlite:///petitions.db")
    if create or url.host:
        return url
    if "uri" in url.query:
        return url if "mode" in url.query else url.update_query_dict({"mode": "rw"})
    if not _is_file(name):
        raise DatabaseUnavailableError(f"there is no database file {name}")
    return url


def prepare_engine(engine: Engine) -> None:
    """Set up every new session, and begin its transactions ourselves."""
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)


def is_in_memory(url: URL) -> bool:
    """Whether the database ends with its connection."""
    return ":memory:" in (url.database or ":memory:") or url.query.get("mode") == "memory"


def fuller_folder(url: URL) -> str:
    """The folder that has less room of the two that SQLite writes to, and what it is for."""
    file = Path((url.database or "").removeprefix("file:")).resolve()
    temporary = os.environ.get("SQLITE_TMPDIR") or tempfile.gettempdir()
    folders = {
        str(file.parent): "of the SQLite file",
        temporary: "of SQLite's temporary files (SQLITE_TMPDIR)",
    }
    there = [folder for folder in folders if Path(folder).is_dir()]
    fuller = min(there, key=lambda folder: shutil.disk_usage(folder).free, default=str(file.parent))
    return f"{fuller}, the folder {folders[fuller]}"


@contextmanager
def read_snapshot(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads."""
    with engine.connect() as connection, connection.begin() as transaction:
        if not _is_in_transaction(connection):
            connection.exec_driver_sql("BEGIN")
        with broken_text_readable(connection):
            yield connection
        transaction.rollback()


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that has the right to write from its start."""
    with engine.connect() as connection, connection.begin():
        if _is_in_transaction(connection):
            connection.exec_driver_sql("COMMIT")  # nothing was done in it
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with broken_text_readable(connection):
            yield connection


@contextmanager
def turn(connection: Connection, lock: Executable) -> Iterator[None]:
    """The caller's own transaction; one that has read an older state cannot come to write."""
    connection.execute(lock)
    if not _is_in_transaction(connection):
        raise no_transaction()
    with broken_text_readable(connection):
        yield


@contextmanager
def broken_text_readable(connection: Connection) -> Iterator[None]:
    """Also where the engine is the user's own, whose sessions stay as they were."""
    # The driver's own connection: for asyncio SQLAlchemy puts another one before it, which knows no text.
    session: Any = connection.connection.driver_connection
    before = session.text_factory
    session.text_factory = _readable_text
    try:
        yield
    finally:
        session.text_factory = before


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
    # Broken bytes stay apart from each other: of two keys with such, one must not pass for the other.
    return stored.decode("utf-8", "surrogateescape")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _is_in_transaction(connection: Connection) -> bool:
    return bool(getattr(connection.connection.driver_connection, "in_transaction", False))
