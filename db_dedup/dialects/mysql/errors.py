"""Errors of MySQL and MariaDB, by number."""

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.exc import PendingRollbackError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from db_dedup.dialects.errors import ended, first_line, without_lost_savepoint, without_values
from db_dedup.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    DedupError,
    DiskFullError,
    EvaluationError,
    ReadOnlyDatabaseError,
    TooMuchAtOnceError,
)
from db_dedup.translation import Phrase

_TERMINAL: Final[Mapping[int, str]] = {
    1044: Phrase("no right to use this database: {message} (needed: a GRANT on one of its tables at least)"),
    1045: Phrase("the server does not take this user and password: {message}"),
    1049: Phrase("there is no such database on the server: {message}"),
    1054: Phrase("a column is missing: {message}"),
    1071: Phrase("pages of the server are too small for our indexes: innodb_page_size must be 16k or more"),
    1142: Phrase("no right: {message}{needed}"),
    1143: Phrase("no right: {message}{needed}"),
    1146: Phrase("a table is missing: {message}"),
    1227: Phrase("no right: {message}"),
    1356: Phrase(
        "a view shows what is gone (a scan makes ours again), "
        "or its maker or its reader has no SELECT on one of its tables: {message}"
    ),
    1370: Phrase("no right: {message}"),
    1419: Phrase("no right to make triggers: SUPER, or log_bin_trust_function_creators = 1, is needed"),
    1665: Phrase(
        "the server's binary log cannot take what we write at READ COMMITTED: "
        "set binlog_format = ROW, or MIXED, in place of STATEMENT"
    ),
    1698: Phrase("the server does not take this user and password: {message}"),
}

_READ_ONLY: Final[Mapping[int, str]] = {
    1290: Phrase("the server is read-only"),
    1792: Phrase("the transaction is read-only"),
    1836: Phrase("the server is read-only"),
}

_DENIED: Final = re.compile(
    r"([A-Za-z ,]+) command denied to user ('.*'@'.*?') for (?:table|column .* in table) '?(.+?)'?"
)
_GRANTED_AS: Final[Mapping[str, str]] = {
    "ANY": "SELECT",
    "SHOW": "SELECT",
    "SELECT with locking clause": "DELETE",  # UPDATE would do as well: we lock what we then delete
}

_TRANSIENT: Final[Mapping[int, str]] = {
    # With MariaDB's innodb_snapshot_isolation.
    1020: Phrase("a row was changed after this transaction had begun to read: begin the transaction again"),
    1040: Phrase("the server has no free connection"),
    1053: Phrase("the server is shutting down"),
    1203: Phrase("the server's limit for this account is reached: {message}"),
    1205: Phrase("lock wait timeout: another transaction held a lock for too long"),
    1213: Phrase("deadlock: two transactions waited for locks of each other"),
    1226: Phrase("the server's limit for this account is reached: {message}"),
    1412: Phrase("a table was altered or truncated after this transaction had begun to read: try again"),
    2002: Phrase("cannot connect: {message}"),
    2003: Phrase("cannot connect: {message}"),
    2005: Phrase("cannot connect: {message}"),
    3058: Phrase("deadlock: two transactions waited for locks of each other"),  # MySQL, of a named lock
}

_ENDED: Final[Mapping[int, str]] = {
    1317: Phrase("the server cancelled the statement"),
    1969: Phrase("the server cancelled the statement: it took longer than max_statement_time"),
    2006: Phrase("the connection was lost"),
    2013: Phrase("the connection was lost"),
    2055: Phrase("the connection was lost"),
    3024: Phrase("the server cancelled the statement: it took longer than max_execution_time"),
}

_TOO_MUCH: Final[Mapping[int, str]] = {
    1038: Phrase("the server has too little memory to sort: {message}"),
    1041: Phrase("the server has too little memory: {message}"),
    1153: Phrase("a statement is larger than the server's max_allowed_packet"),
}

_NO_SPACE: Final = re.compile(r"(?:Errcode|errno): 28\b|errno: 135\b|No space left on device")
"""What their messages then name: 135 is InnoDB's own number for a file that cannot grow."""
_WRITE_FAULTS: Final = (3, 14, 20, 1005, 1021, 1026, 1030, 1114)
"""Numbers with which the servers report a full disk; all but 1021 and 1114 report other faults as well."""
_ALWAYS_FULL: Final = (1021, 1114)
_OF_NO_FILE: Final = "'(temporary)'"
"""MariaDB's name for each temporary table."""

_EVALUATION: Final = frozenset(
    {1139, 1242, 1365, 1411, 1644, 1690, *range(3140, 3159), *range(3685, 3700), 4037, 4038}
)
"""Functions that cannot take the values of a row: patterns, JSON, numbers out of range, and errors that the
user's own functions raise."""

_FAMILIES: Final = (
    (DatabaseUnavailableError, _TRANSIENT),
    (ReadOnlyDatabaseError, _READ_ONLY),
    (DatabaseError, _TERMINAL),
    (TooMuchAtOnceError, _TOO_MUCH),
)

_ON_A_CLOSED_CONNECTION: Final = (0, "")
"""PyMySQL's message for statements after the one that noticed that the connection was lost."""


def translate_error(error: SQLAlchemyError) -> DedupError:
    """Translate by error number; values in unknown messages are left out."""
    error = without_lost_savepoint(error, "SAVEPOINT sa_savepoint_")  # SQLAlchemy's own names
    if isinstance(error, PoolTimeoutError):
        return DatabaseUnavailableError("no connection of the pool was free in time")
    if isinstance(error, PendingRollbackError):  # of a statement that puts a setting back after the loss
        return DatabaseUnavailableError("the connection was lost")
    cause: Any = getattr(error, "orig", None)
    if cause is None:
        return DatabaseError(first_line(error))
    return _translated(error, *_parts(cause))


def _translated(error: SQLAlchemyError, number: int, message: str) -> DedupError:
    if number in _ENDED:
        return ended(error, _ENDED[number])
    if (number, message) == _ON_A_CLOSED_CONNECTION:
        return DatabaseUnavailableError("the connection was lost")
    if number in _ALWAYS_FULL or (number in _WRITE_FAULTS and _NO_SPACE.search(message)):
        return _disk_full(message)
    for family, words in _FAMILIES:
        if number in words:
            return family(words[number], message=message, needed=_needed_grant(message))
    family = EvaluationError if number in _EVALUATION else DatabaseError
    return family("MySQL refused (error {number}): {message}", number=number, message=without_values(message))


def _disk_full(message: str) -> DiskFullError:
    """Say which disk: the servers name a file in their data folder without the folder's path."""
    if _OF_NO_FILE in message:
        return DiskFullError(
            "a temporary table has reached the server's limit (SELECT @@tmp_disk_table_size), or "
            "the disk of the server's temporary folder (SELECT @@tmpdir) is full: {message}",
            message=message,
        )
    if "'/" in message:
        return DiskFullError(
            "the disk of the server's temporary folder (SELECT @@tmpdir) is full: {message}", message=message
        )
    return DiskFullError(
        "the disk of the server's data folder (SELECT @@datadir) is full: {message}", message=message
    )


def _needed_grant(message: str) -> str:
    """Return the missing GRANT in brackets behind a space; "" where the message does not tell it."""
    denied = _DENIED.fullmatch(message)
    if denied is None:
        return ""
    rights, user, table = denied.groups()
    return Phrase(
        " (needed: GRANT {rights} ON {table} TO {user})",
        rights=_GRANTED_AS.get(rights, rights),
        table=table,
        user=user,
    )


def _parts(cause: BaseException) -> tuple[int, str]:
    """Return the number and the message of a driver's error; 0 where it has no number."""
    match cause.args:
        case (int() as number, message, *_):
            return number, str(message)
    return 0, first_line(cause)
