"""Sessions, transactions and locks in PostgreSQL."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from sqlalchemy import URL, Connection, Engine, Executable, FromClause, Table, event, func, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ProgrammingError

from db_dedup.dialects.jdbc import JdbcAccess, require_host
from db_dedup.dialects.leadership import SessionLock
from db_dedup.dialects.sessions import (
    AS_BYTES,
    ROW_LOCK_SECONDS,
    lock_digest,
    no_transaction,
    refuse_options,
)
from db_dedup.errors import ConfigError
from db_dedup.records.names import Namespace

OPTIONS: Final[Mapping[str, Any]] = {"pool_pre_ping": True}

_PINS: Final = {
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
}

_OWN_PINS: Final = {
    **_PINS,
    "client_encoding": "UTF8",
    "quote_all_identifiers": "off",
    "row_security": "off",
    "default_transaction_isolation": "read committed",
}
"""What our own sessions set. Without an encoding the driver reads no text from a database in SQL_ASCII.
SQLAlchemy knows no type whose name is quoted. Row-level security would hide rows from our own sessions
without an error, and a scan would take them for deleted; a session of the caller's sees what the caller may
see. Reads at SERIALIZABLE, which a server may set for all sessions, fail because of transactions of the
application, and make these fail."""

_ALL_ROWS: Final = "SET LOCAL row_security = off"
"""The same for a transaction of ours by an engine that the caller has made."""

_IDLE_FOR_LONG: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""For a snapshot: it must outlive the matching, in which no statement is run for minutes."""

_SEES_COMMITS: Final = ("READ COMMITTED", "READ UNCOMMITTED")
"""Isolation levels at which each statement sees what is committed when it begins."""

_SEARCH_PATH: Final = text("SELECT setting, source FROM pg_catalog.pg_settings WHERE name = 'search_path'")
_SET_BY_CLIENTS: Final = ("client", "session")

_NOT_IN_A_URL: Final = ("autocommit", "context", "cursor_factory", "prepare_threshold", "row_factory")
"""Options of the driver that take no text."""


def engine_url(url: URL, create: bool) -> URL:  # noqa: ARG001
    """Return the same URL.

    Raises:
        ConfigError: it has an option that would change how our sessions work.
    """
    refuse_options(url, _NOT_IN_A_URL)
    return url


def jdbc(engine: Engine) -> JdbcAccess:
    """Return what PostgreSQL's own driver needs; most options of its URL have libpq's names.

    The search path is that of our sessions, which may be set elsewhere than in the URL. Spark looks at the
    table before it runs the first statement of a session, so the path is an option of the URL; only where
    the server does not set it by itself, since a pool of connections before the server may refuse it.
    """
    url = engine.url
    host = require_host(url)
    with engine.connect() as connection:
        search_path, source = connection.execute(_SEARCH_PATH).one()
    port = url.port or url.query.get("port", "5432")
    options = {name: value for name, value in url.query.items() if name not in ("host", "port")}
    if source in _SET_BY_CLIENTS:
        options.setdefault("currentSchema", search_path)
    tail = f"?{urlencode(options, doseq=True)}" if options else ""
    return JdbcAccess(
        url=f"jdbc:postgresql://{host}:{port}/{quote(url.database or '', safe='')}{tail}",
        drivers=("org.postgresql.Driver",),
        jar="libpostgresql-jdbc-java",
        first_statement=_set_pins(),
        user=url.username,
        password=str(url.password) if url.password is not None else None,
    )


def prepare_engine(engine: Engine) -> None:
    """Set, in each new session, what decides how values are written.

    That is done first: SQLAlchemy reads texts from the first session.
    """
    event.listen(engine, "connect", _set_up, insert=True)
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "before_cursor_execute", partial(_ask_for_bytes, engine))


@contextmanager
def read_snapshot(engine: Engine, of: FromClause | None = None) -> Iterator[Connection]:
    """Open a transaction at REPEATABLE READ, READ ONLY."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin() as transaction:
            connection.exec_driver_sql(f"SET TRANSACTION READ ONLY; {_ALL_ROWS}; {_IDLE_FOR_LONG}")
            if of is not None:
                _lock_to_read(connection, of)
            yield connection
            transaction.rollback()


def _lock_to_read(connection: Connection, of: FromClause) -> None:
    """Lock a table as each query does, but before the snapshot is taken.

    A query takes the snapshot first and then waits for the lock. If it waits for an ALTER TABLE that writes
    the table anew, or for a transaction with TRUNCATE, its snapshot has no row of the table. LOCK TABLE knows
    no foreign tables, and asks for SELECT on all columns: what it refuses is read without it.
    """
    name = connection.dialect.identifier_preparer.format_table(of)
    with suppress(ProgrammingError), connection.begin_nested():
        connection.exec_driver_sql(f"LOCK TABLE {name} IN ACCESS SHARE MODE")


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a transaction at READ COMMITTED; it may write unless the server or the account forbids it."""
    with engine.connect() as connection:
        connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            connection.exec_driver_sql(_ALL_ROWS)
            yield connection


@contextmanager
def lock_row(connection: Connection, lock: Executable, queue: Table) -> Iterator[None]:  # noqa: ARG001
    """Lock a row in the caller's transaction.

    Raises:
        ConfigError: each statement is committed by itself, or reads the database as it was at the first one.
    """
    level = connection.scalar(select(func.upper(func.current_setting("transaction_isolation"))))
    if level not in _SEES_COMMITS:
        raise ConfigError(
            "a check that blocks must see what others have committed by then, and this transaction is at "
            '{level}: begin it with isolation_level="READ COMMITTED"',
            level=level,
        )
    with setting(connection, "lock_timeout", f"{ROW_LOCK_SECONDS}s"):
        locked = connection.execute(lock).rowcount
    # A transaction has a number from its first lock on; after an autocommit no number is left.
    if locked and connection.scalar(select(func.txid_current_if_assigned())) is None:
        raise no_transaction()
    yield


@contextmanager
def schema_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    """Take an advisory lock, which ends with the caller's transaction."""
    number = int.from_bytes(lock_digest(namespace.schema, namespace.prefix), signed=True)
    connection.execute(select(func.pg_advisory_xact_lock(number)))
    yield


def leader_lock(engine: Engine, namespace: Namespace) -> SessionLock:
    """Return an advisory lock of a session."""
    number = int.from_bytes(lock_digest("leader", namespace.schema, namespace.prefix), signed=True)
    acquire, release = func.pg_try_advisory_lock(number), func.pg_advisory_unlock(number)
    return SessionLock(engine, select(acquire), select(release))


def setting(connection: Connection, name: str, value: str) -> AbstractContextManager[None]:
    """Set another value for this transaction, and put it back unless the transaction failed."""
    return _settings(connection, {name: value})


def settled(connection: Connection) -> AbstractContextManager[None]:
    """Set what our own sessions set, for this transaction; put it back unless the transaction failed."""
    return _settings(connection, _PINS)


def is_autocommit(connection: Connection) -> bool:
    """Return whether each statement is a transaction of its own."""
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


@contextmanager
def _settings(connection: Connection, wanted: Mapping[str, str]) -> Iterator[None]:
    current = connection.execute(select(*(func.current_setting(name).label(name) for name in wanted)))
    before = dict(current.mappings().one())
    changed = {name: value for name, value in wanted.items() if before[name] != value}
    # Where each statement is a transaction, what is set for one is gone with the next.
    is_local = not is_autocommit(connection)
    _set(connection, changed, is_local)
    try:
        yield
    except BaseException:
        if not is_local:
            _set(connection, {name: before[name] for name in changed}, is_local)
        raise
    _set(connection, {name: before[name] for name in changed}, is_local)


def _set(connection: Connection, values: Mapping[str, str], is_local: bool) -> None:
    if values:
        calls = (func.set_config(name, value, is_local) for name, value in values.items())
        connection.execute(select(*calls))


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    # By statement: a connection pooler between us and the server refuses start-up options.
    with closing(connection.cursor()) as cursor:
        cursor.execute(_set_pins())
    connection.commit()


def _ask_for_bytes(engine: Engine, _connection: Connection, cursor: Any, *others: Any) -> None:
    """Have the rows of a query with `AS_BYTES` in the binary format; as text, bytes take twice the room."""
    _statement, _parameters, context, _is_many = others
    if context is not None and AS_BYTES.keys() <= context.execution_options.keys():
        cursor.format = engine.dialect.loaded_dbapi.pq.Format.BINARY


def _set_pins() -> str:
    """Return the statement that sets what our own sessions need."""
    calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _OWN_PINS.items())
    return f"SELECT {calls}"
