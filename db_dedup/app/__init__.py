"""The one place that picks dialect, engine and settings; and the Python API."""

from db_dedup.app.database import Database
from db_dedup.app.deduplicator import Deduplicator, open_deduplicator

__all__ = ["Database", "Deduplicator", "open_deduplicator"]
