"""What every job on one table works with."""

from dataclasses import dataclass

from sqlalchemy import Engine

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.progress import Progress
from db_dedup.schema.tables import Tables
from db_dedup.store.source import Source


@dataclass(frozen=True)
class JobContext:
    """A watched table, the two databases it concerns, and whom to tell.

    Attributes:
        engine: leads to our tables.
        dialect: of their database.
        tables: ours.
        watched: the table's settings, its key filled in.
        source: the user's table.
        source_engine: leads to the user's rows; the same object as `engine` unless the store is apart.
        source_dialect: of their database.
        progress: told how far the job is.
    """

    engine: Engine
    dialect: Dialect
    tables: Tables
    watched: WatchedTable
    source: Source
    source_engine: Engine
    source_dialect: Dialect
    progress: Progress

    @property
    def is_apart(self) -> bool:
        """Our tables are in another database than the user's rows."""
        return self.engine is not self.source_engine
