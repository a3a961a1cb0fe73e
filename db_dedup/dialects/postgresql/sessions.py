"""How we open a PostgreSQL session, and what its transactions see."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, Executable, event, func, select
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.connecting import refuse_options
from db_dedup.dialects.turns import TURN_SECONDS, no_transaction

OPTIONS: Final[Mapping[str, Any]] = {"pool_pre_ping": True}

_PINS: Final = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
}

_NOT_IN_A_URL: Final = ("autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory")
"""Options of the driver that take no text."""


def checked_url(url: URL) -> URL:
    """The same URL.

    Raises:
        ConfigError: it has an option that would change how our sessions work.
    """
    refuse_options(url, _NOT_IN_A_URL)
    return url


def prepare_engine(engine: Engine) -> None:
    """Pin what decides how values are written."""
    event.listen(engine, "connect", _set_up)


@contextmanager
def read_snapshot(engine: Engine) -> Iterator[Connection]:
    """REPEATABLE READ, READ ONLY."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin() as transaction:
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            yield connection
            transaction.rollback()


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """READ COMMITTED; it may write unless the server, or the user's own setting, says that nobody may."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            yield connection


@contextmanager
def turn(connection: Connection, lock: Executable) -> Iterator[None]:
    """The caller's own transaction, which has a number from its first lock on."""
    with setting(connection, "lock_timeout", f"{TURN_SECONDS}s"):
        connection.execute(lock)
    if connection.scalar(select(func.txid_current_if_assigned())) is None:
        raise no_transaction()
    yield


@contextmanager
def setting(connection: Connection, name: str, value: str) -> Iterator[None]:
    """Another value for this transaction; put back unless it failed."""
    before = connection.scalar(select(func.current_setting(name)))
    connection.execute(select(func.set_config(name, value, True)))
    yield
    connection.execute(select(func.set_config(name, before, True)))


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    # By statement: a connection pooler between us and the server refuses start-up options.
    calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _PINS.items())
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT {calls}")
    connection.commit()
