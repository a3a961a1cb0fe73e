"""Sessions, transactions and locks in MySQL and MariaDB."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import (
    URL,
    CompoundSelect,
    Connection,
    Engine,
    Executable,
    FromClause,
    Select,
    Table,
    event,
    func,
    select,
    text,
    union_all,
)
from sqlalchemy.engine.interfaces import DBAPIConnection

from db_dedup.dialects.jdbc import JdbcAccess, require_host
from db_dedup.dialects.leadership import SessionLock
from db_dedup.dialects.mysql import catalogue
from db_dedup.dialects.sessions import (
    ROW_LOCK_SECONDS,
    SCHEMA_LOCK_SECONDS,
    lock_digest,
    no_transaction,
    refuse_options,
)
from db_dedup.errors import ConfigError, DatabaseError, DatabaseUnavailableError
from db_dedup.records.names import Namespace

OPTIONS: Final[Mapping[str, Any]] = {"pool_pre_ping": True}

_UTC: Final = "+00:00"
_NO_LIMIT: Final = 2**64 - 1
_PACKET_BYTES: Final = 1024 * 1024
"""The least `max_allowed_packet` that takes each of our statements."""
_CHARSET: Final = "utf8mb4"
"""The only character set that has every character. With another one the server writes "?" for those that it
does not have."""

# ALLOW_INVALID_DATES: a key such as 31 February, which a session with this mode has stored, is found again.
# completion_type: with CHAIN each commit begins a transaction, in which no level of isolation can be set.
# net_write_timeout: a scan may work on one page for longer than the server's usual minute.
# group_concat_max_len: MySQL cuts what it joins after a kilobyte.
# sql_select_limit: a server may have a limit for all sessions, and each query would lose rows in silence.
# sql_big_selects, sql_safe_updates: a server may refuse statements that read or change many rows.
# The last two, each the usual wait_timeout: a snapshot must outlive the matching, in which no statement is
# run for minutes. Only MariaDB reads what is in the comment, and only it has that variable.
_SET_UP: Final = (
    f"SET SESSION time_zone = '{_UTC}', "
    "sql_mode = 'STRICT_TRANS_TABLES,ALLOW_INVALID_DATES,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
    "completion_type = NO_CHAIN, "
    "net_write_timeout = 3600, "
    "group_concat_max_len = 67108864, "
    f"sql_select_limit = {_NO_LIMIT}, "
    "sql_big_selects = ON, "
    "sql_safe_updates = OFF, "
    "wait_timeout = 28800 "
    "/*M!100300 , idle_readonly_transaction_timeout = 28800 */"
)

# The default of both servers. A server may set another level for all sessions: at SERIALIZABLE each read
# would lock rows and wait for changes that are not committed, at READ UNCOMMITTED it would take these for
# committed. No variable for it exists in all versions of MariaDB and MySQL.
_SET_LEVEL: Final = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"

_NOT_IN_A_URL: Final = ("autocommit", "conv", "cursorclass", "defer_connect", "sql_mode")
"""Options of the driver that take no text, or that we set."""

_LOSING_THE_AUTHORITY: Final = ("ssl_verify_cert", "ssl_verify_identity")
"""Options with which PyMySQL does not use the `ssl_ca` that SQLAlchemy passes on: it would take the
authorities of the machine instead, and would not compare the name of the server."""

_IN_TRANSACTION: Final = 1
"""The bit of the server's status that is set within a transaction."""


def engine_url(url: URL, create: bool) -> URL:  # noqa: ARG001
    """Return the URL with the one character set that holds every text.

    Raises:
        ConfigError: it has an option that would change how our sessions work, or another character set.
    """
    refuse_options(url, _NOT_IN_A_URL)
    for name in url.query:
        if name in _LOSING_THE_AUTHORITY:
            raise ConfigError(
                "the database URL must not set {name}: ssl_ca=FILE alone, with the certificate of the "
                "authority, verifies the server's certificate and name",
                name=name,
            )
    _check_charset(url.query.get("charset", _CHARSET))
    return url.update_query_dict({"charset": _CHARSET})


def jdbc(engine: Engine) -> JdbcAccess:
    """Return what MariaDB's or MySQL's driver needs.

    The database is that of our sessions, which may be set elsewhere than in the URL.

    Spark quotes names as this server does only if the URL begins with jdbc:mysql, which both drivers take.
    MySQL's usual accounts encrypt their password by a key of the server, for which the drivers ask only if an
    option allows it. PyMySQL, which our own sessions use, always asks for it.
    """
    url = engine.url
    host = require_host(url)
    with engine.connect() as connection:
        database = connection.exec_driver_sql("SELECT DATABASE()").scalar()
    place = f"{host}:{url.port or 3306}/{quote(database or '', safe='')}"
    return JdbcAccess(
        url=f"jdbc:mysql://{place}?permitMysqlScheme&allowPublicKeyRetrieval=true",
        drivers=("org.mariadb.jdbc.Driver", "com.mysql.cj.jdbc.Driver"),
        jar="libmariadb-java",
        first_statement=_SET_UP,
        user=url.username,
        password=str(url.password) if url.password is not None else None,
    )


def prepare_engine(engine: Engine) -> None:
    """Set, in each new session, what decides how values are written and how long a write waits.

    That is done first: SQLAlchemy asks the first session how names are quoted.
    """
    event.listen(engine, "connect", _set_up, insert=True)


@contextmanager
def read_snapshot(engine: Engine, of: FromClause | None = None) -> Iterator[Connection]:  # noqa: ARG001
    """Open a read-only transaction that sees all tables as they are at its start."""
    with engine.connect() as connection, _discard_unread_rows(connection), connection.begin() as transaction:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        yield connection
        transaction.rollback()


@contextmanager
def _discard_unread_rows(connection: Connection) -> Iterator[None]:
    """Discard the rest of a streamed result where the connection was lost.

    Otherwise PyMySQL tries to read the rest when it deletes the result, and the interpreter prints the
    failure.
    """
    driver: Any = connection.connection.dbapi_connection
    try:
        yield
    finally:
        result = getattr(driver, "_result", None)
        if result is not None and not getattr(driver, "open", True):
            result.unbuffered_active = False


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a transaction at READ COMMITTED, which locks only the rows that it finds."""
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.exec_driver_sql("START TRANSACTION")
        yield connection


@contextmanager
def settled(connection: Connection) -> Iterator[None]:
    """Set the time zone of this session to UTC, and put it back at the end."""
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
def lock_row(connection: Connection, lock: Executable, queue: Table) -> Iterator[None]:
    """Lock a row in the caller's transaction, and make each read within a locking read.

    That is done at every isolation level: no statement returns a level that was set for one transaction only.

    Raises:
        ConfigError: each statement is committed by itself.
    """
    with _settings_of_a_check(connection, ROW_LOCK_SECONDS):
        connection.execute(lock)
        if not _is_in_transaction(connection):
            raise no_transaction()
        with _locking_reads(connection, queue):
            yield


@contextmanager
def schema_lock(connection: Connection, namespace: Namespace) -> Iterator[None]:
    """Hold a named lock of the server, and commit before and after.

    Raises:
        DatabaseUnavailableError: another process holds it for too long.
    """
    # The server has one set of locks for all its databases.
    database = connection.scalar(select(func.database()))
    name = f"db_dedup.{lock_digest(database, namespace.prefix).hex()}"
    if connection.scalar(select(func.get_lock(name, SCHEMA_LOCK_SECONDS))) != 1:
        raise DatabaseUnavailableError(
            "another upgrade has held this database for {seconds} seconds", seconds=SCHEMA_LOCK_SECONDS
        )
    try:
        # DDL commits anyway. A commit before it shows what the last holder did; one after it keeps the
        # revision from being lost while the tables stay.
        connection.exec_driver_sql("COMMIT")
        yield
        connection.exec_driver_sql("COMMIT")
    finally:
        connection.execute(select(func.release_lock(name)))


def leader_lock(engine: Engine, namespace: Namespace) -> SessionLock:
    """Return a named lock of a session."""
    name = f"db_dedup.{lock_digest('leader', engine.url.database, namespace.prefix).hex()}"
    acquire, release = func.get_lock(name, 0), func.release_lock(name)
    return SessionLock(engine, select(acquire == 1), select(release))


@contextmanager
def _settings_of_a_check(connection: Connection, seconds: int) -> Iterator[None]:
    """Set the time-out of this session, and no limit of rows; put both back at the end.

    Raises:
        ConfigError: the session has a character set that does not hold every text.
    """
    found = connection.exec_driver_sql(
        "SELECT @@SESSION.innodb_lock_wait_timeout, @@SESSION.sql_select_limit, "
        "@@SESSION.character_set_results"
    )
    wait, limit, charset = found.one()
    _check_charset(charset)
    change = "SET SESSION innodb_lock_wait_timeout = {}, sql_select_limit = {}"
    connection.exec_driver_sql(change.format(seconds, _NO_LIMIT))
    try:
        yield
    finally:
        connection.exec_driver_sql(change.format(int(wait), int(limit)))


@contextmanager
def _locking_reads(connection: Connection, queue: Table) -> Iterator[None]:
    """Make each read a locking read: it sees what is committed, not the transaction's snapshot."""

    def lock(_: Connection, statement: Any, multi: Any, parameters: Any, __: Any) -> tuple[Any, Any, Any]:
        return _with_locks(statement, queue), multi, parameters

    event.listen(connection, "before_execute", lock, retval=True)
    try:
        yield
    finally:
        event.remove(connection, "before_execute", lock)


def _with_locks(statement: Any, queue: Table) -> Any:
    if isinstance(statement, CompoundSelect):
        return union_all(*(_with_locks(part, queue).self_group() for part in statement.selects))
    if not isinstance(statement, Select) or not statement.columns_clause_froms:
        return statement
    if any(getattr(one, "schema", None) == catalogue.SCHEMA for one in statement.columns_clause_froms):
        return statement  # MySQL refuses locks on its catalogue
    return statement.with_for_update(read=True, skip_locked=queue in statement.columns_clause_froms)


def _check_charset(charset: object) -> None:
    if str(charset).lower() != _CHARSET:
        raise ConfigError(
            "the character set {charset} does not have every character, and the server would replace the "
            "others by ?: connect with charset=utf8mb4",
            charset=charset,
        )


def _is_in_transaction(connection: Connection) -> bool:
    """Return what the server last reported to the driver; True where the driver does not show it."""
    status = getattr(connection.connection.dbapi_connection, "server_status", _IN_TRANSACTION)
    return bool(status & _IN_TRANSACTION)


def _set_up(connection: DBAPIConnection, _record: object) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(_SET_UP)
        cursor.execute(_SET_LEVEL)
        cursor.execute("SELECT @@max_allowed_packet, DATABASE()")
        packet_bytes, database = cursor.fetchone() or (_PACKET_BYTES, "")
    if database is None:
        raise ConfigError("the database URL names no database: mysql://user@host/name")
    if packet_bytes < _PACKET_BYTES:
        # A server closes the connection at a larger statement, and does not say why.
        raise DatabaseError(
            "the server's max_allowed_packet is {found:,} bytes, and db_dedup writes up to {needed:,} at "
            "once: set it to 1M or more (SET GLOBAL max_allowed_packet, and in the server's settings)",
            found=packet_bytes,
            needed=_PACKET_BYTES,
        )


def is_autocommit(connection: Connection) -> bool:
    """Return whether each statement is a transaction of its own."""
    driver = connection.connection.dbapi_connection
    return bool(getattr(driver, "get_autocommit", bool)())
