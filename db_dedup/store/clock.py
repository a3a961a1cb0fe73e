"""The time as our tables keep it."""

from datetime import UTC, datetime

from sqlalchemy import Connection, select

from db_dedup.schema.types import UtcNow


def utc_now() -> datetime:
    """Return now by this machine's clock, in UTC, without a zone: for times that are only shown."""
    return datetime.now(UTC).replace(tzinfo=None)


def database_now(connection: Connection) -> datetime:
    """Return now by the database's clock, in UTC, without a zone.

    For times that are compared with others in our tables: the machines that write these have different
    clocks.
    """
    return connection.execute(select(UtcNow())).scalar_one()
