"""How we open a MySQL or MariaDB session, and what its transactions see."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.connecting import refuse_options

OPTIONS: Final[Mapping[str, Any]] = {"pool_pre_ping": True}

# net_write_timeout: a scan may work on one page for longer than the server's usual minute.
_SET_UP: Final = (
    "SET SESSION time_zone = '+00:00', "
    "sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
    "net_write_timeout = 3600"
)

_NOT_IN_A_URL: Final = ("autocommit", "conv", "cursorclass", "defer_connect", "sql_mode")
"""Options of the driver that take no text, or that we set."""


def with_charset(url: URL) -> URL:
    """The URL with the one character set that holds every text.

    Raises:
        ConfigError: it has an option that would change how our sessions work.
    """
    refuse_options(url, _NOT_IN_A_URL)
    return url if "charset" in url.query else url.update_query_dict({"charset": "utf8mb4"})


def prepare_engine(engine: Engine) -> None:
    """Pin what decides how values are written and what a write waits for."""
    event.listen(engine, "connect", _set_up)


@contextmanager
def read_snapshot(engine: Engine) -> Iterator[Connection]:
    """One consistent, read-only view of all tables."""
    with engine.connect() as connection, connection.begin() as transaction:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield connection
        transaction.rollback()


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """READ COMMITTED: locks only the rows that it finds."""
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.exec_driver_sql("START TRANSACTION")
        yield connection


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(_SET_UP)
