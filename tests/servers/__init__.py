"""Database servers that live as long as the tests do: private ones, or those an environment variable names."""

from tests.servers.database import Database, Server, fresh_database, opened
from tests.servers.mariadb import start_mariadb
from tests.servers.postgresql import start_postgresql
from tests.servers.process import ServerUnavailableError

__all__ = [
    "Database",
    "Server",
    "ServerUnavailableError",
    "fresh_database",
    "opened",
    "start_mariadb",
    "start_postgresql",
]
