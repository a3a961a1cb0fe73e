"""The time as our tables keep it."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, in UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)
