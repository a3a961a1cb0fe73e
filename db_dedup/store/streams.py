"""Reading the rows of a query in parts, without all of them in memory."""

from collections.abc import Generator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select


def parts_of(
    connection: Connection, query: Select[Any], rows: int
) -> Generator[Sequence[Row[Any]], None, None]:
    """Yield the rows of a query, at most so many at a time.

    The server's cursor is closed at the end of the iteration, however it ends: one that an error leaves open
    would hold the rows, and psycopg warns of it.
    """
    with connection.execute(query.execution_options(yield_per=rows)) as found:
        yield from found.partitions()
