"""How the machines of a cluster read a database through JDBC, as an engine on several machines does."""

import re
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import URL

from db_dedup.errors import ConfigError

SHOWN_STATES: Final = ("08", "0A", "25", "28", "3D", "3F", "42", "53", "54", "55", "57", "58")
"""Classes of SQLSTATE whose messages speak of connections and objects, not of values of rows."""

EXCEPTION_OF_A_DRIVER: Final = re.compile(
    r"\b(?:org\.(?:postgresql|mariadb)|com\.mysql|java\.sql)\.[\w.$]*Exception\b"
)
"""An exception of a JDBC driver; its message may have values of rows."""


@dataclass(frozen=True)
class JdbcAccess:
    """What a JDBC driver needs for sessions that write values as our own sessions do.

    Attributes:
        url: with the options of the database's URL, without account and password.
        drivers: classes of drivers that understand the URL, the first one that is found is used.
        jar: the package of Debian that has such a driver, for messages.
        first_statement: is run in each new session.
        user: the account; None for the driver's default.
        password: hidden in `repr`.
    """

    url: str
    drivers: tuple[str, ...]
    jar: str
    first_statement: str
    user: str | None
    password: str | None = field(repr=False)


def require_host(url: URL) -> str:
    """Return the host of a URL.

    Raises:
        ConfigError: it has none, as that of a socket file.
    """
    host = url.host or url.query.get("host", "")
    if not isinstance(host, str) or not host or host.startswith("/") or "unix_socket" in url.query:
        raise ConfigError(
            "the machines of a cluster reach a database by its host name, and the URL has none: "
            "write {database}://user:password@host/database",
            database=url.get_backend_name(),
        )
    return host
