"""What the sessions of all databases have in common: a URL is checked, and a row is locked.

Some faults of a URL show only when its driver connects. The message is one line and shows no value of an
option, since one may be a password.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from sqlalchemy import URL
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import ConfigError, DedupError, ReadOnlyDatabaseError

ErrorListener = Callable[[ExceptionContext], None]

_MISUSED = (TypeError, ValueError, AttributeError, LookupError, OSError)
"""What drivers raise for an option they do not know or cannot read; a server's refusal is none of them."""

AS_BYTES: Final[Mapping[str, Any]] = {"db_dedup_as_bytes": True}
"""Options of a query that returns many bytes: a driver that would get them as text asks for the bytes."""

ROW_LOCK_SECONDS: Final = 10
"""Seconds to wait for a row of ours that another writer, or a batch of the worker, has locked."""

SCHEMA_LOCK_SECONDS: Final = 600
"""Seconds to wait while another process changes our schema."""


def connect_or_explain(url: URL, extra: str | None) -> Callable[..., DBAPIConnection]:
    """Make a listener to `do_connect`, which connects or says which part of the URL is wrong.

    Args:
        url: its options may be the fault.
        extra: our extra that installs the driver with all that it may need.
    """

    def connect(dialect: Dialect, _record: object, arguments: list[Any], options: dict[str, Any]) -> Any:
        try:
            return dialect.connect(*arguments, **options)
        except _MISUSED as error:
            raise wrong_part(url, error) from None
        except RuntimeError as error:  # PyMySQL's, of a package that it needs for some servers only
            raise ConfigError('{error}: pip install "db-dedup[{extra}]"', error=error, extra=extra) from None

    return connect


def renew_read_only(translate_error: Callable[[SQLAlchemyError], DedupError]) -> ErrorListener:
    """Make a listener to `handle_error`: a pool replaces a session that has refused a write as read-only.

    PostgreSQL and MySQL decide that for a session when it begins, and a proxy when it connects. So a session
    may stay read-only when the database has long been writable.
    """

    def renew(fault: ExceptionContext) -> None:
        error, connection = fault.sqlalchemy_exception, fault.connection
        if error is None or connection is None or connection.invalidated:
            return
        if isinstance(translate_error(error), ReadOnlyDatabaseError):
            connection.connection.invalidate(error, soft=True)  # once its transaction is over

    return renew


def refuse_options(url: URL, names: Collection[str]) -> None:
    """Raise ConfigError for the first option of the URL that is one of these."""
    for name in url.query:
        if name in names:
            raise ConfigError(
                "the database URL must not set {name}: our sessions rely on how it is", name=name
            )


def wrong_part(url: URL, error: Exception) -> ConfigError:
    """Return the error for a URL that its driver does not take; it names the options without their values."""
    options = ", ".join(sorted(url.query)) or "nothing"
    if isinstance(error, OSError) and error.strerror:
        return ConfigError(
            "a file that the database URL names cannot be used: {reason} "
            "(options after its question mark: {options})",
            reason=error.strerror,
            options=options,
        )
    reason = f": {error}" if isinstance(error, TypeError) else ""
    return ConfigError(
        "the database URL has a part that {driver} does not take{reason} "
        "(options after its question mark: {options})",
        driver=url.drivername,
        reason=reason,
        options=options,
    )


def lock_digest(*parts: str | None) -> bytes:
    """Return 8 bytes that name a lock of ours among all those of a server."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()


def no_transaction() -> ConfigError:
    """Return the error for a connection on which a lock would end with its statement."""
    return ConfigError(
        "a check that blocks needs a transaction, and this connection commits each statement by itself: "
        "hand over one without AUTOCOMMIT"
    )
