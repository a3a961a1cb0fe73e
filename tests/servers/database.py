"""A fresh, empty database for one test."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError

DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mariadb": "mariadb+pymysql",
    "mysql": "mysql+pymysql",
}

SQL_OF = {"mysql": "mariadb"}

HAS_CHINESE_ORDER = text("""
    SELECT current_setting('server_version_num')::int >= 150000
       AND EXISTS (SELECT FROM pg_collation WHERE collname = 'zh-x-icu')
""")


@dataclass(frozen=True)
class Database:
    """What a test is given.

    Attributes:
        name: Whose SQL it speaks: "sqlite", "postgresql" or "mariadb", which stands for MySQL as well.
        url: Driver and password included.
        engine: Plain, as a user's own would be; disposed when the test ends.
    """

    name: str
    url: str
    engine: Engine


@dataclass(frozen=True)
class Server:
    """A running server, whose administrator makes and drops databases.

    Attributes:
        url: The administrator's.
        stop: Ends it, when it is ours to end.
    """

    name: str
    url: URL
    stop: Callable[[], None]

    @classmethod
    def elsewhere(cls, name: str, url: str) -> Server:
        """A server that somebody else runs: `url` is its administrator's."""
        return cls(name, with_driver(make_url(url)), stop=lambda: None)


def with_driver(url: URL) -> URL:
    """Return `url` with the driver that the project's extras install, and all of Unicode on MySQL."""
    url = url.set(drivername=DRIVERS.get(url.drivername, url.drivername))
    if url.get_backend_name() == "postgresql" or "charset" in url.query:
        return url
    return url.update_query_dict({"charset": "utf8mb4"})


@contextmanager
def fresh_database(server: Server) -> Iterator[Database]:
    """A new database on `server`, dropped at the end together with whoever is still connected."""
    name = f"dedup_test_{secrets.token_hex(6)}"
    make, drop = (
        (_make_on_postgresql, _drop_on_postgresql)
        if server.url.get_backend_name() == "postgresql"
        else (_make_on_mysql, _drop_on_mysql)
    )
    administrator = create_engine(server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with administrator.connect() as connection:
        make(connection, name)
    try:
        with opened(SQL_OF.get(server.name, server.name), server.url.set(database=name)) as database:
            yield database
    finally:
        with administrator.connect() as connection:
            drop(connection, name)


@contextmanager
def opened(name: str, url: URL) -> Iterator[Database]:
    """The database at `url`, with an engine that is disposed at the end."""
    engine = create_engine(url)
    event.listen(engine, "handle_error", _close_lost_cursor)
    try:
        yield Database(name, url.render_as_string(hide_password=False), engine)
    finally:
        engine.dispose()


def _close_lost_cursor(fault: ExceptionContext) -> None:
    """Close the cursor of a session that has ended.

    SQLAlchemy leaves it open, and psycopg warns of a server's cursor that is deleted like that.
    """
    cursor = getattr(fault.execution_context, "cursor", None)
    if fault.is_disconnect and cursor is not None:
        cursor.close()


def _make_on_postgresql(connection: Connection, name: str) -> None:
    """Sort by the rules of a language where the server can: no order of ours may rest on them."""
    order = "LOCALE_PROVIDER icu ICU_LOCALE 'zh'" if connection.scalar(HAS_CHINESE_ORDER) else ""
    connection.execute(text(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {order}"))


def _drop_on_postgresql(connection: Connection, name: str) -> None:
    connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))


def _make_on_mysql(connection: Connection, name: str) -> None:
    connection.execute(text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4"))


def _drop_on_mysql(connection: Connection, name: str) -> None:
    still_there = text("SELECT id FROM information_schema.processlist WHERE db = :name")
    for (thread,) in connection.execute(still_there, {"name": name}).all():
        with suppress(DBAPIError):  # it has left meanwhile
            connection.execute(text(f"KILL {int(thread)}"))
    connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
