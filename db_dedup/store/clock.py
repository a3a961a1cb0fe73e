"""The time as our tables keep it."""

from datetime import UTC, datetime

from sqlalchemy import Connection, select

from db_dedup.schema.types import UtcNow


def utc_now() -> datetime:
    """Now by this machine's clock, in UTC, without a zone: for what is only shown."""
    return datetime.now(UTC).replace(tzinfo=None)


def database_now(connection: Connection) -> datetime:
    """Now by the database's clock, in UTC, without a zone.

    For what is compared with other times in our tables: those who write them have clocks of their own.
    """
    return connection.execute(select(UtcNow())).scalar_one()
