"""Errors of SQLite, by result code."""

import re
import sqlite3
from collections.abc import Mapping
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.errors import first_line, without_lost_savepoint, without_values
from db_dedup.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    DedupError,
    DiskFullError,
    EvaluationError,
    TooMuchAtOnceError,
)
from db_dedup.translation import Phrase

_TERMINAL: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_READONLY: Phrase("the SQLite file, or the folder it lies in, is read-only"),
    sqlite3.SQLITE_NOTADB: Phrase("the file is no SQLite database"),
    sqlite3.SQLITE_CORRUPT: Phrase("the SQLite file is damaged: `PRAGMA integrity_check` tells where"),
    sqlite3.SQLITE_PERM: Phrase("no right to open the SQLite file"),
    sqlite3.SQLITE_AUTH: Phrase("no right to do this in the SQLite file"),
    sqlite3.SQLITE_CANTOPEN: Phrase("the SQLite file cannot be opened: is its folder there, and writable?"),
}

_TRANSIENT: Final[Mapping[int, str]] = {
    sqlite3.SQLITE_BUSY: Phrase("the SQLite file is locked by another program"),
    sqlite3.SQLITE_LOCKED: Phrase("a table of the SQLite file is locked"),
    sqlite3.SQLITE_IOERR: Phrase("the SQLite file cannot be read or written right now"),
}

_OF_THE_STATEMENT: Final = re.compile(
    "no such |ambiguous column name|near |unrecognized token|incomplete input|wrong number of arguments"
    r"|misuse of|table .* has |unsafe use of |expected \d+ columns for |view .* is circularly defined"
    "|sub-select returns "
)
"""Begins the messages of SQLITE_ERROR with which SQLite refuses a statement before it has read a row; others
come from a function that cannot take the values of a row."""

_BROKEN_TEXT: Final = "Could not decode to UTF-8"


def translate_error(error: SQLAlchemyError) -> DedupError:
    """Translate by the primary result code, which is the low byte of the extended one."""
    error = without_lost_savepoint(error, "no such savepoint: ")
    cause = getattr(error, "orig", None)
    if _BROKEN_TEXT in str(cause):  # the driver's own words show the text
        return DatabaseError("a text in the SQLite file is no valid UTF-8: give its URL instead of an Engine")
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_TOOBIG:
        return TooMuchAtOnceError("a statement or a value is larger than SQLite takes")
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError("the disk of the SQLite file, or of SQLite's temporary folder, is full")
    if code in _TRANSIENT:
        return DatabaseUnavailableError(_TRANSIENT[code])
    if code in _TERMINAL:
        return DatabaseError(_TERMINAL[code])
    message = first_line(cause or error)
    is_of_a_row = code == sqlite3.SQLITE_ERROR and not _OF_THE_STATEMENT.match(message)
    kind = EvaluationError if is_of_a_row else DatabaseError
    return kind("SQLite refused: {message}", message=without_values(message) if is_of_a_row else message)
