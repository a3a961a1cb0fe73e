"""DDL on tables and views that others use: it waits a few seconds for their locks, never longer.

While a DDL statement waits for its lock, every later statement on the table waits behind it, even a SELECT.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DatabaseUnavailableError, ReadOnlyDatabaseError
from db_dedup.translation import Phrase


@contextmanager
def short_wait(connection: Connection, dialect: Dialect, what: str) -> Iterator[None]:
    """Let statements within the block fail that wait for a lock for more than some seconds.

    Args:
        connection: in a transaction.
        dialect: of its database.
        what: name of the locked object for the message, such as "table 'petitions'".

    Raises:
        DatabaseUnavailableError: it is busy.
    """
    try:
        with dialect.short_lock_wait(connection):
            yield
    except SQLAlchemyError as error:
        translated = dialect.translate_error(error)
        is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
        if is_lost or not translated.is_transient or isinstance(translated, ReadOnlyDatabaseError):
            raise
        raise DatabaseUnavailableError(
            "{what} is busy ({reason}): try again when no long transaction works on it",
            what=what,
            reason=translated,
        ) from error


def run_ddl(connection: Connection, dialect: Dialect, table: str, statements: Iterable[str]) -> None:
    """Run statements that lock a table of the user's.

    Raises:
        DatabaseUnavailableError: the table is busy.
    """
    with short_wait(connection, dialect, Phrase("table {table!r}", table=table)):
        for statement in statements:
            # Otherwise a percent sign in a name would be read as a parameter.
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
