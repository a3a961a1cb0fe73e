"""How far the answer of each watched table lags behind its rows."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from db_dedup.schema.tables import Tables
from db_dedup.schema.views import queue_lag
from db_dedup.store.clock import database_now


@dataclass(frozen=True)
class Lag:
    """One row of the view `queue_lag`, and when it was read; times in UTC, by the database's clock."""

    table_name: str
    waiting: int
    oldest_at: datetime | None
    dead: int
    attached_at: datetime | None
    last_scan_at: datetime | None
    read_at: datetime

    @property
    def age_seconds(self) -> float | None:
        """How long the oldest change has waited, at least 0; None where no change waits."""
        if self.oldest_at is None:
            return None
        return max(0.0, round((self.read_at - self.oldest_at).total_seconds(), 3))


def read_lag(connection: Connection, tables: Tables) -> dict[str, Lag]:
    """Return table name -> its lag, in one query.

    It runs the select of the view, and so needs no right on the view.
    """
    now = database_now(connection)
    found = (Lag(**row._mapping, read_at=now) for row in connection.execute(queue_lag(tables)))
    return {lag.table_name: lag for lag in found}
