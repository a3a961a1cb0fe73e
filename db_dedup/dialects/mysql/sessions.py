"""How we open a MySQL or MariaDB session, and what its transactions see."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

from sqlalchemy import (
    URL,
    CompoundSelect,
    Connection,
    Engine,
    Executable,
    Select,
    Table,
    event,
    text,
    union_all,
)
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.connecting import refuse_options
from db_dedup.dialects.turns import TURN_SECONDS, no_transaction

OPTIONS: Final[Mapping[str, Any]] = {"pool_pre_ping": True}

_UTC: Final = "+00:00"

# net_write_timeout: a scan may work on one page for longer than the server's usual minute.
_SET_UP: Final = (
    f"SET SESSION time_zone = '{_UTC}', "
    "sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
    "net_write_timeout = 3600"
)

_NOT_IN_A_URL: Final = ("autocommit", "conv", "cursorclass", "defer_connect", "sql_mode")
"""Options of the driver that take no text, or that we set."""

_IN_TRANSACTION: Final = 1
"""The bit of the server's status that says so."""


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
    with engine.connect() as connection, _unread_rows_let_go(connection), connection.begin() as transaction:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield connection
        transaction.rollback()


@contextmanager
def _unread_rows_let_go(connection: Connection) -> Iterator[None]:
    """Where the connection was lost in the middle of a streamed result, PyMySQL would still try to read the
    rest when it deletes the result, and the interpreter would print that it cannot."""
    driver: Any = connection.connection.dbapi_connection
    try:
        yield
    finally:
        result = getattr(driver, "_result", None)
        if result is not None and not getattr(driver, "open", True):
            result.unbuffered_active = False


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """READ COMMITTED: locks only the rows that it finds."""
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.exec_driver_sql("START TRANSACTION")
        yield connection


@contextmanager
def in_utc(connection: Connection) -> Iterator[None]:
    """For this session; put back at the end."""
    before = connection.exec_driver_sql("SELECT @@SESSION.time_zone").scalar_one()
    if before == _UTC:
        yield
        return
    change = text("SET SESSION time_zone = :zone")
    connection.execute(change, {"zone": _UTC})
    try:
        yield
    finally:
        connection.execute(change, {"zone": before})


@contextmanager
def turn(connection: Connection, lock: Executable, queue: Table) -> Iterator[None]:
    """Use the caller's own transaction, with locking reads at every isolation level.

    No statement tells the level of a transaction that was set for this one alone.

    Raises:
        ConfigError: each statement is committed by itself.
    """
    with _lock_wait(connection, TURN_SECONDS):
        connection.execute(lock)
        if not _is_in_transaction(connection):
            raise no_transaction()
        with _locking_reads(connection, queue):
            yield


@contextmanager
def _lock_wait(connection: Connection, seconds: int) -> Iterator[None]:
    """For this session; put back at the end."""
    before = connection.exec_driver_sql("SELECT @@SESSION.innodb_lock_wait_timeout").scalar_one()
    connection.exec_driver_sql(f"SET SESSION innodb_lock_wait_timeout = {seconds}")
    try:
        yield
    finally:
        connection.exec_driver_sql(f"SET SESSION innodb_lock_wait_timeout = {int(before)}")


@contextmanager
def _locking_reads(connection: Connection, queue: Table) -> Iterator[None]:
    """Each read is of what is committed, as a locking read is, and not of the transaction's snapshot."""
    is_on = [True]

    def lock(_: Connection, statement: Any, multi: Any, parameters: Any, __: Any) -> tuple[Any, Any, Any]:
        return (_with_locks(statement, queue) if is_on[0] else statement), multi, parameters

    event.listen(connection, "before_execute", lock, retval=True)
    try:
        yield
    finally:
        is_on[0] = False  # a connection's listeners stay as long as it does


def _with_locks(statement: Any, queue: Table) -> Any:
    if isinstance(statement, CompoundSelect):
        return union_all(*(_with_locks(part, queue).self_group() for part in statement.selects))
    if not isinstance(statement, Select) or not statement.columns_clause_froms:
        return statement
    return statement.with_for_update(read=True, skip_locked=queue in statement.columns_clause_froms)


def _is_in_transaction(connection: Connection) -> bool:
    """As the server last told the driver; True where the driver keeps it to itself."""
    status = getattr(connection.connection.dbapi_connection, "server_status", _IN_TRANSACTION)
    return bool(status & _IN_TRANSACTION)


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(_SET_UP)
