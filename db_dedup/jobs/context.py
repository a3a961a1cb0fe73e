"""What every job on one table needs."""

from dataclasses import dataclass, replace

from sqlalchemy import Engine

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.engines.base import Engine as MatchingEngine
from db_dedup.progress import Progress
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.recipe import Recipe
from db_dedup.schema.tables import Tables
from db_dedup.store.source import Source


@dataclass(frozen=True)
class JobContext:
    """A watched table, its databases, and where to report progress.

    Attributes:
        engine: connects to our tables.
        dialect: of their database.
        tables: ours.
        watched: the table's settings, its key filled in.
        source: the user's table.
        source_engine: connects to the user's rows; the same object as `engine` unless `is_apart`.
        source_dialect: of their database.
        progress: is notified of each step of the job.
        matching_engine: finds the duplicates.
        frames: the frozen list of the recipe that serves, or that a scan builds.
    """

    engine: Engine
    dialect: Dialect
    tables: Tables
    watched: WatchedTable
    source: Source
    source_engine: Engine
    source_dialect: Dialect
    progress: Progress
    matching_engine: MatchingEngine
    frames: FrameList = NO_FRAMES

    @property
    def recipe(self) -> Recipe:
        """The recipe of the settings, with the frozen list."""
        return replace(self.watched.recipe, frames=self.frames)

    @property
    def is_apart(self) -> bool:
        """Whether our tables are in another database than the user's rows."""
        return self.engine is not self.source_engine
