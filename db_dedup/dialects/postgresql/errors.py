"""Errors of PostgreSQL, by SQLSTATE."""

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy.exc import DataError, ProgrammingError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from db_dedup.dialects.errors import ended, first_line, one_line
from db_dedup.dialects.postgresql.rights import needed_grant
from db_dedup.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    DedupError,
    DiskFullError,
    EvaluationError,
    ReadOnlyDatabaseError,
    TooMuchAtOnceError,
)
from db_dedup.translation import Phrase

_POOLED: Final = Phrase(
    "another client uses the same session of the server, as behind a connection pooler in transaction mode: "
    "connect to the server itself, or to a pool in session mode"
)
"""For a prepared statement of the driver that is missing, or that exists already."""

_TERMINAL: Final[Mapping[str, str]] = {
    "2BP01": Phrase("{message}: drop or change these first ({detail})"),
    "22021": Phrase("a text in the database is no valid UTF-8: mend it"),
    "26000": _POOLED,
    "42P05": _POOLED,
    "28P01": Phrase("the server does not take this user and password: {message}"),
    "28000": Phrase("the server does not let this user in"),
    "3D000": Phrase("there is no such database on the server"),
    "42501": Phrase("no right: {message}{needed}"),
    "42P01": Phrase("a table is missing: {message}"),
    "42703": Phrase("a column is missing: {message}"),
    "3F000": Phrase("a schema is missing: {message}"),
}

_READ_ONLY: Final[Mapping[str, str]] = {
    "25006": Phrase("the database is read-only"),
}

_NOT_STORABLE: Final[Mapping[str, str]] = {
    "22P05": Phrase(
        "a name or a row key has characters that this database cannot take (SHOW server_encoding)"
    ),
}

_TRANSIENT: Final[Mapping[str, str]] = {
    "40001": Phrase("serialization failure: another transaction changed the same rows"),
    "40P01": Phrase("deadlock: two transactions waited for locks of each other"),
    "55P03": Phrase("lock wait timeout: another transaction held a lock for too long"),
    "57P03": Phrase("the server is starting"),
    "53300": Phrase("the server has no free connection"),
}

_ENDED: Final[Mapping[str, str]] = {
    "25P03": Phrase("the server ended the connection: idle_in_transaction_session_timeout"),
    "25P04": Phrase("the server ended the connection: transaction_timeout"),
    "57014": Phrase(
        "the server cancelled the statement: it took longer than statement_timeout, or somebody cancelled it"
    ),
    "57P01": Phrase("the server ended the connection"),
    "57P02": Phrase("the server is shutting down"),
    "57P05": Phrase("the server ended the connection: idle_session_timeout"),
}

_TOO_MUCH: Final[Mapping[str, str]] = {
    "53200": Phrase("the server has too little memory: {message}{hint}"),
    "54000": Phrase("too much for one statement: {message}"),
}

_DISK_FULL: Final[Mapping[str, str]] = {
    "53100": Phrase("the disk of the server's data folder (SHOW data_directory) is full: {message}"),
}

_FAMILIES: Final = (
    (DiskFullError, _DISK_FULL),
    (DatabaseUnavailableError, _TRANSIENT),
    (ReadOnlyDatabaseError, _READ_ONLY),
    (DatabaseError, _TERMINAL),
    (ConfigError, _NOT_STORABLE),
    (TooMuchAtOnceError, _TOO_MUCH),
)

_ENDED_BY_REPLAY: Final = Phrase(
    "the replica ended the query to replay changes ({message}): try again, or set "
    "hot_standby_feedback = on or a longer max_standby_streaming_delay on the replica"
)
_RECOVERY: Final = "conflict with recovery"
"""In the message of a replica that ends a query which is in the way of what it replays."""

_INTERNAL: Final = "XX000"
_ALTERED_MEANWHILE: Final = ("cache lookup failed", "could not open relation with OID", "tuple concurrently")
"""How messages of `_INTERNAL` begin, in all languages, if another session drops or alters what a statement is
about: a function that describes a trigger may find it and then not the function that it calls."""

_CONNECTION_CLASS = "08"
_SHOWN_CLASSES = ("0A", "25", "3D", "3F", "42", "53", "54", "55", "57", "58")
"""Classes of SQLSTATE whose messages speak of objects and never of values."""

_EVALUATION_CLASSES = ("20", "21", "2F", "38", "39", "P0")
"""Classes of SQLSTATE of functions that cannot take the values of a row, or raise an error of their own;
class 22 is SQLAlchemy's DataError."""

_REFUSED_LOGIN: Final = "password authentication failed"
_REFUSED = (
    "no password supplied",
    "pg_hba.conf",
    "does not exist",
    "invalid ",
    "unrecognized configuration parameter",
)
"""Parts of libpq's messages: without a session there is no SQLSTATE."""

_TRANSIENT_WORDS: Final = (
    "too many |pg_use_reserved_connections|could not (?:open|access)|not currently accepting|LDAP"
    "|连接太多|連線|接続|연결|Verbindungen|connexions|conexiones|conexões|connessioni|соединений|подключений"
)
_NAMING_REPLY: Final = re.compile(rf"""\w:  (?![^\n]*(?:{_TRANSIENT_WORDS}))[^\n]*["«»„“]""")
"""A server's reply that quotes a name. The severity and two spaces are before it, in all languages.

A server refuses a user, a database or a host with its name in quotes. That it is starting, stopping or has no
free connection, it says without a name. The exceptions are replies about too many connections of a role or a
database, known by their words in the languages of most servers, and about files and other servers.
"""

_REPLY: Final = re.compile(r"\w:  ([^\n]*)")
_NAME: Final = re.compile(r"""["«»„“]\s*([^"«»„“”]+?)\s*["«»“”]""")


def translate_error(error: SQLAlchemyError) -> DedupError:
    """Translate by SQLSTATE; a failed connection has none."""
    if isinstance(error, PoolTimeoutError):
        return DatabaseUnavailableError("no connection of the pool was free in time")
    cause: Any = getattr(error, "orig", None)
    if cause is None:
        return DatabaseError(first_line(error))
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    if state is None or state.startswith(_CONNECTION_CLASS):
        return _connection_error(error, cause)
    message = first_line(cause)
    if state in _ENDED:
        return ended(error, _ENDED[state])
    for family, words in _FAMILIES:
        if state in words:
            needed = needed_grant(message, getattr(error, "statement", None) or "")
            template = _ENDED_BY_REPLAY if _RECOVERY in message else words[state]
            detail, hint = _note(cause, "message_detail"), _note(cause, "message_hint")
            hint = f" ({hint})" if hint else ""
            return family(template, message=message, needed=needed, detail=detail, hint=hint)
    return _other_error(state, message, type(cause).__name__)


def _other_error(state: str, message: str, kind_of_cause: str) -> DedupError:
    if state == _INTERNAL and message.startswith(_ALTERED_MEANWHILE):
        return DatabaseUnavailableError("somebody dropped or altered a table, trigger or function meanwhile")
    shown = message if state.startswith(_SHOWN_CLASSES) else kind_of_cause
    kind = EvaluationError if state.startswith(_EVALUATION_CLASSES) else DatabaseError
    return kind("PostgreSQL refused (SQLSTATE {state}): {message}", state=state, message=shown)


def _connection_error(error: SQLAlchemyError, cause: BaseException) -> DedupError:
    if getattr(error, "connection_invalidated", False):
        return DatabaseUnavailableError("the connection was lost")
    message = one_line(cause)
    if isinstance(error, ProgrammingError):
        return ConfigError(
            "the database URL has a part that the driver does not take: {message}", message=message
        )
    if isinstance(error, DataError):  # a value that the driver itself cannot send
        return DatabaseError("PostgreSQL refused: {message}", message=message)
    is_of_login = _is_of_login(cause)
    if is_of_login or any(words in message for words in _REFUSED) or _NAMING_REPLY.search(str(cause)):
        template = _TERMINAL["28P01"] if is_of_login else Phrase("cannot connect: {message}")
        return DatabaseError(template, message=message)
    if getattr(error, "statement", None) is not None:
        return ended(error, "the connection was lost: {message}", message=message)
    return ended(error, "cannot connect: {message}", message=message)


def _is_of_login(cause: BaseException) -> bool:
    """Return whether the server refused the user, or the password that it had asked for.

    In other languages than English, its reply then has the user's name in quotes and no other name.
    """
    if _REFUSED_LOGIN in str(cause):
        return True
    session: Any = getattr(cause, "pgconn", None)  # psycopg 3 keeps what is known of a failed one
    if not getattr(session, "used_password", False) or session.user == session.db:
        return False
    refusals = (reply for reply in _REPLY.findall(str(cause)) if not re.search(_TRANSIENT_WORDS, reply))
    return any(_NAME.findall(reply) == [session.user.decode(errors="replace")] for reply in refusals)


def _note(cause: Any, name: str) -> str:
    """Return a server's details or hint on one line; shown only where they are of objects and never of
    values."""
    return " ".join((getattr(getattr(cause, "diag", None), name, None) or "").split())
