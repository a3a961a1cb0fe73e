"""How far the answer of each watched table lags behind its rows."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from db_dedup.schema.tables import Tables
from db_dedup.schema.views import queue_lag
from db_dedup.store.clock import utc_now


@dataclass(frozen=True)
class Lag:
    """One row of the view `queue_lag`; times in UTC."""

    table_name: str
    waiting: int
    oldest_at: datetime | None
    dead: int
    attached_at: datetime | None
    last_scan_at: datetime | None

    @property
    def age_seconds(self) -> float | None:
        """How long the oldest change has waited; clocks that differ do not make it less than 0."""
        if self.oldest_at is None:
            return None
        return max(0.0, round((utc_now() - self.oldest_at).total_seconds(), 3))


def read_lag(connection: Connection, tables: Tables) -> dict[str, Lag]:
    """Table name -> its lag, in one query. It needs no right on the view: it runs what that selects."""
    found = (Lag(**row._mapping) for row in connection.execute(queue_lag(tables)))
    return {lag.table_name: lag for lag in found}
