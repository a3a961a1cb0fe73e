"""What comes between the statements of a worker or a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPICursor

from tests import sessions


class InterruptedRunError(BaseException):
    """Raised in the middle of a run, as Ctrl-C is."""


@contextmanager
def before_statement(engine: Engine, number: int, do: Callable[[Connection], None]) -> Iterator[None]:
    """Do something right before the statement of this number on any connection of the engine.

    Args:
        engine: of those whose statements count.
        number: from 1; where there are fewer, nothing is done.
        do: given the statement's connection. It must not interrupt statements of its own.
    """
    numbers = count(1)

    def watch(connection: Connection, cursor: DBAPICursor, *_: object) -> None:
        if next(numbers) != number:
            return
        try:
            do(connection)
        except BaseException:
            cursor.close()  # SQLAlchemy does not close a cursor that it has not used yet
            raise

    event.listen(engine, "before_cursor_execute", watch)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", watch)


def end_session(connection: Connection, administrator: Engine) -> None:
    """End the session of a connection, as an administrator would."""
    driver: Any = connection.connection.dbapi_connection
    session = driver.info.backend_pid if connection.dialect.name == "postgresql" else driver.thread_id()
    with administrator.connect() as own:
        sessions.end_session(own, session)
