"""An empty database of each kind, on a private server where it takes one."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import TextClause, text

from benchmarks import DATABASES
from tests.servers import (
    Server,
    ServerUnavailableError,
    fresh_database,
    start_mariadb,
    start_postgresql,
    start_postgresql_on,
)
from tests.servers.spark import free_port

__all__ = ["DATABASES", "durable_postgresql", "each_database", "reached_postgresql"]

# As an administrator would: a million fingerprints and their indexes do not fit into the servers' own 128 MB.
_SHARED_BUFFERS = "1024MB"
# MariaDB reads past the system's cache. What is not in its pool, such as a row of a million petitions that a
# check compares, is read from the disk.
_POOL_BYTES = 4 << 30
_BUFFER_POOL = text(f"SET GLOBAL innodb_buffer_pool_size = {_POOL_BYTES}")
# As much as PostgreSQL's `max_wal_size` from the start. With the 32 MB of the tests each page that a worker
# changes is soon written to the disk.
_REDO_LOG = {"innodb-log-file-size": "1G"}


def each_database(names: Sequence[str] = DATABASES) -> Iterator[tuple[str, str]]:
    """(name, URL) of an empty database of each kind in turn; says so where there is no server for one."""
    for name in names:
        try:
            with _OPEN[name]() as url:
                yield name, url
        except ServerUnavailableError as error:
            print(f"{name}: not measured ({error})")


@contextmanager
def durable_postgresql() -> Iterator[str]:
    """URL of an empty database on a server whose commits reach the disk, as PostgreSQL comes.

    Raises:
        ServerUnavailableError: there is no PostgreSQL here.
    """
    durable = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    with _on(start_postgresql(shared_buffers=_SHARED_BUFFERS, **durable)) as url:
        yield url


@contextmanager
def reached_postgresql() -> Iterator[str]:
    """URL of an empty database on a server that processes on this machine reach by a port.

    Raises:
        ServerUnavailableError: there is no PostgreSQL here.
    """
    with _on(start_postgresql_on(free_port(), shared_buffers=_SHARED_BUFFERS)) as url:
        yield url


@contextmanager
def _sqlite() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder) / 'benchmark.db'}"


@contextmanager
def _postgresql() -> Iterator[str]:
    with _on(start_postgresql(shared_buffers=_SHARED_BUFFERS)) as url:
        yield url


@contextmanager
def _mariadb() -> Iterator[str]:
    with _on(start_mariadb(_REDO_LOG), _BUFFER_POOL) as url:
        yield url


@contextmanager
def _on(server: Server, *settings: TextClause) -> Iterator[str]:
    try:
        with fresh_database(server) as database:
            with database.engine.connect() as connection:
                for setting in settings:
                    connection.execute(setting)
            yield database.url
    finally:
        server.stop()


_OPEN: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "SQLite": _sqlite,
    "PostgreSQL": _postgresql,
    "MariaDB": _mariadb,
}
