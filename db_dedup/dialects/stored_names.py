"""How a database stores the names of tables and views."""

from collections.abc import Callable

from sqlalchemy import Connection

from db_dedup.dialects import dialect_for


def stored_as(connection: Connection) -> Callable[[str], str]:
    """Return a function that gives the name under which a table or view is stored.

    A server of MySQL or MariaDB may be set to store all names in lower case, as it is on Windows.
    """
    query = dialect_for(connection).capabilities.lowers_names
    return str.lower if query and connection.exec_driver_sql(query).scalar_one() else str
