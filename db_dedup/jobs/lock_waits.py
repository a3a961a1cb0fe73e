"""DDL on tables and views that others use: it waits for them for some seconds, never longer.

Whoever waits for such a lock makes everybody wait who comes later, even those who only read.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DatabaseUnavailableError


@contextmanager
def short_wait(connection: Connection, dialect: Dialect, what: str) -> Iterator[None]:
    """Within it, a statement that waits for a lock fails after some seconds.

    Args:
        connection: in a transaction.
        dialect: of its database.
        what: is locked, for the message, such as "table 'petitions'".

    Raises:
        DatabaseUnavailableError: it is busy.
    """
    try:
        with dialect.short_lock_wait(connection):
            yield
    except SQLAlchemyError as error:
        translated = dialect.translate_error(error)
        if not translated.is_transient:
            raise
        raise DatabaseUnavailableError(
            f"{what} is busy ({translated}): try again when no long transaction works on it"
        ) from error


def run_ddl(connection: Connection, dialect: Dialect, table: str, statements: Iterable[str]) -> None:
    """Run statements that lock a table of the user's.

    Raises:
        DatabaseUnavailableError: the table is busy.
    """
    with short_wait(connection, dialect, f"table {table!r}"):
        for statement in statements:
            # Else a percent sign in a name would call for a value.
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
