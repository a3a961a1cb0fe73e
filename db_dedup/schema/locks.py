"""One change of our schema at a time, whoever starts it."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from sqlalchemy import Connection, func, select

from db_dedup.errors import DatabaseUnavailableError
from db_dedup.schema.names import Namespace

_WAIT_SECONDS: Final = 600

COMMITS_DDL: Final = frozenset({"mysql", "mariadb"})
"""Dialects in which each CREATE and DROP commits at once."""


def schema_lock(connection: Connection, namespace: Namespace) -> AbstractContextManager[None]:
    """Wait for and hold the right to change our schema; where DDL is transactional, until the caller commits.

    Raises:
        DatabaseUnavailableError: another process holds it for too long.
    """
    return _LOCKS[connection.dialect.name](connection, namespace)


@contextmanager
def _postgresql_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    number = int.from_bytes(_digest(namespace.schema, namespace.prefix), signed=True)
    connection.execute(select(func.pg_advisory_xact_lock(number)))
    yield


@contextmanager
def _mysql_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    # The server has one set of locks for all its databases.
    database = connection.scalar(select(func.database()))
    name = f"db_dedup.{_digest(database, namespace.prefix).hex()}"
    if connection.scalar(select(func.get_lock(name, _WAIT_SECONDS))) != 1:
        raise DatabaseUnavailableError(f"another upgrade has held this database for {_WAIT_SECONDS} seconds")
    try:
        # DDL commits anyway: do it before, to see what the last holder did, and after, so that the revision
        # is never lost while the tables stay.
        connection.exec_driver_sql("COMMIT")
        yield
        connection.exec_driver_sql("COMMIT")
    finally:
        connection.execute(select(func.release_lock(name)))


@contextmanager
def _sqlite_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    # Where the engine emits BEGIN itself, it does so before the first statement.
    connection.exec_driver_sql("SELECT 1")
    if connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]
        # A write that leaves nothing turns this transaction into the writer, before it has read anything.
        name = connection.dialect.identifier_preparer.quote(namespace.name("upgrade_lock"))
        connection.exec_driver_sql(f"CREATE TABLE {name} (held INTEGER)")
        connection.exec_driver_sql(f"DROP TABLE {name}")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    yield


_LOCKS: Final[dict[str, Callable[[Connection, Namespace], AbstractContextManager[None]]]] = {
    "postgresql": _postgresql_lock,
    "mysql": _mysql_lock,
    "mariadb": _mysql_lock,
    "sqlite": _sqlite_lock,
}


def _digest(*parts: str | None) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
