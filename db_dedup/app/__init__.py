"""The Python API, and the only package that chooses dialect, engine and settings."""

from db_dedup.app.database import Database
from db_dedup.app.deduplicator import Deduplicator, open_deduplicator
from db_dedup.app.proposals import Proposals, propose_settings
from db_dedup.app.view_aside import view_aside

__all__ = [
    "Database", "Deduplicator", "Proposals", "open_deduplicator", "propose_settings", "view_aside",
]  # fmt: skip
