"""Database servers for the length of a test run: private ones, or those that a variable names."""

from tests.servers.database import Database, Server, fresh_database, opened
from tests.servers.mariadb import start_mariadb
from tests.servers.mysql import start_mysql
from tests.servers.postgresql import start_postgresql, start_postgresql_on, start_standby
from tests.servers.process import ServerUnavailableError

__all__ = [
    "Database",
    "Server",
    "ServerUnavailableError",
    "fresh_database",
    "opened",
    "start_mariadb",
    "start_mysql",
    "start_postgresql",
    "start_postgresql_on",
    "start_standby",
]
