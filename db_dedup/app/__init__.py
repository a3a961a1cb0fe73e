"""The Python API, and the only package that chooses dialect, engine and settings."""

from db_dedup.app.database import Database
from db_dedup.app.deduplicator import Deduplicator, open_deduplicator

__all__ = ["Database", "Deduplicator", "open_deduplicator"]
