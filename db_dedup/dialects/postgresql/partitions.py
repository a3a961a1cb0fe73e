"""The parts of partitioned tables, which PostgreSQL lists as tables of their own."""

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text

_LIST: Final = text((Path(__file__).parent / "sql" / "list_partitions.sql").read_text(encoding="utf-8"))


def partition_names(connection: Connection) -> set[str]:
    """Return the names of all partitions on the session's search path."""
    return set(connection.execute(_LIST).scalars())
