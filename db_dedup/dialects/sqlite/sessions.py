"""Sessions, transactions and locks in SQLite."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from sqlalchemy import URL, Connection, Engine, Executable, FromClause, Table, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.leadership import FileLock
from db_dedup.dialects.sessions import no_transaction
from db_dedup.errors import ConfigError, DatabaseUnavailableError
from db_dedup.records.names import Namespace
from db_dedup.translation import Phrase

OPTIONS: Final[Mapping[str, Any]] = {"connect_args": {"timeout": 10.0}}
_NO_TRANSACTION: Final = "dedup_no_transaction"


def engine_url(url: URL, create: bool) -> URL:
    """Return the same URL; one with `uri` opens only an existing file, unless it sets another mode.

    Raises:
        ConfigError: it names no file.
        DatabaseUnavailableError: SQLite would make an empty database of it, and `create` is False.
    """
    name = url.database or ":memory:"
    if _is_in_memory(url):
        raise ConfigError("a database in memory has no tables to look at: write sqlite:///petitions.db")
    if create or url.host:
        return url
    if "uri" in url.query:
        return url if "mode" in url.query else url.update_query_dict({"mode": "rw"})
    if not _is_file(name):
        # Whole: a relative path depends on the current folder, which may not be that of the settings.
        raise DatabaseUnavailableError("there is no database file {name}", name=Path(name).absolute())
    return url


def jdbc(engine: Engine) -> NoReturn:  # noqa: ARG001
    """Refuse: a file has no server that several machines could ask.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        "SQLite keeps a table in a file of one machine, which no cluster can read: "
        "scan it with the embedded engine, on that machine"
    )


def prepare_engine(engine: Engine) -> None:
    """Set up every new session, and emit BEGIN in place of the driver."""
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)


def is_shared(engine: Engine) -> bool:
    """Return False for a database in memory, which belongs to one connection."""
    return not _is_in_memory(engine.url)


def _is_in_memory(url: URL) -> bool:
    """Return whether the database ends with its connection."""
    return ":memory:" in (url.database or ":memory:") or url.query.get("mode") == "memory"


def full_folder(engine: Engine) -> str | None:
    """Return which of the two folders that SQLite writes to has less room, and what it is for."""
    file = Path((engine.url.database or "").removeprefix("file:")).resolve()
    temporary = os.environ.get("SQLITE_TMPDIR") or tempfile.gettempdir()
    folders = {
        str(file.parent): Phrase("of the SQLite file"),
        temporary: Phrase("of SQLite's temporary files (SQLITE_TMPDIR)"),
    }
    by_disk: dict[int, str] = {}
    for folder in folders:
        if Path(folder).is_dir():
            # Of two folders on one disk the first is taken: the free room changes between two calls.
            by_disk.setdefault(Path(folder).stat().st_dev, folder)
    fuller = min(
        by_disk.values(), key=lambda folder: shutil.disk_usage(folder).free, default=str(file.parent)
    )
    return Phrase("{fuller}, the folder {folders}", fuller=fuller, folders=folders[fuller])


@contextmanager
def read_snapshot(engine: Engine, of: FromClause | None = None) -> Iterator[Connection]:  # noqa: ARG001
    """Open a transaction that only reads; with a rollback journal nobody can write meanwhile."""
    with engine.connect() as connection, connection.begin() as transaction:
        if not _is_in_transaction(connection):
            connection.exec_driver_sql("BEGIN")
        with settled(connection):
            yield connection
        transaction.rollback()


@contextmanager
def short_reads(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose statements run outside a transaction.

    With a rollback journal, a transaction that has read something blocks the commits of others.
    """
    with engine.connect() as opened:
        connection = opened.execution_options(**{_NO_TRANSACTION: True})
        with settled(connection):
            yield connection


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that holds the write lock from its start, so that a second writer waits."""
    with engine.connect() as connection, connection.begin():
        if _is_in_transaction(connection):
            connection.exec_driver_sql("COMMIT")  # nothing was done in it
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with settled(connection):
            yield connection


@contextmanager
def lock_row(connection: Connection, lock: Executable, queue: Table) -> Iterator[None]:  # noqa: ARG001
    """Lock by a write in the caller's transaction; it fails where that has read an older state."""
    connection.execute(lock)
    if not _is_in_transaction(connection):
        raise no_transaction()
    with settled(connection):
        yield


@contextmanager
def settled(connection: Connection) -> Iterator[None]:
    """Make text that is no valid UTF-8 readable, and put the session back as it was at the end."""
    # The driver's own connection: for asyncio SQLAlchemy puts another one before it, which knows no text.
    session: Any = connection.connection.driver_connection
    before = session.text_factory
    session.text_factory = _readable_text
    try:
        yield
    finally:
        session.text_factory = before


def reads_beside_writes(connection: Connection) -> bool:
    """Return whether the file is in WAL mode, where readers and the writer do not wait for each other."""
    return bool(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal")


@contextmanager
def schema_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    """Take the write lock of the file, until the caller's transaction ends."""
    # An engine that emits BEGIN itself does so before the first statement.
    connection.exec_driver_sql("SELECT 1")
    if _is_in_transaction(connection):
        # A write that leaves nothing turns this transaction into the writer, before it has read anything.
        name = connection.dialect.identifier_preparer.quote(namespace.name("upgrade_lock"))
        connection.exec_driver_sql(f"CREATE TABLE {name} (held INTEGER)")
        connection.exec_driver_sql(f"DROP TABLE {name}")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    yield


def leader_lock(engine: Engine, namespace: Namespace) -> FileLock:
    """Return a lock on a file beside the database: a lock in it would keep all others from writing."""
    name = (engine.url.database or "").removeprefix("file:")
    return FileLock(f"{Path(name).resolve()}-{namespace.name('leader')}")


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    # The driver would begin transactions itself, but not before reads and DDL.
    connection.isolation_level = None
    connection.text_factory = _readable_text
    connection.execute("PRAGMA foreign_keys = ON")
    # 64 MB: with SQLite's own 2 MB, writes to many indexes take twice the time.
    connection.execute("PRAGMA cache_size = -65536")


def _begin(connection: Connection) -> None:
    if not connection.get_execution_options().get(_NO_TRANSACTION):
        connection.exec_driver_sql("BEGIN")


# Invalid bytes become different characters, so that keys that differ in them stay different. It is a partial
# and not a function of ours, which would take twice the time: every text that is read goes through it.
_readable_text: Final[Callable[[bytes], str]] = partial(str, encoding="utf-8", errors="surrogateescape")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _is_in_transaction(connection: Connection) -> bool:
    return bool(getattr(connection.connection.driver_connection, "in_transaction", False))
