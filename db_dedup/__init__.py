"""Finds near-duplicate rows in relational tables and keeps the answer as SQL views.

>>> from db_dedup import Deduplicator, Text, Value  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from db_dedup.app import Database, Deduplicator, view_aside
    from db_dedup.config import Settings, Text, Value, WatchedTable
    from db_dedup.errors import DedupError
    from db_dedup.frames.data_frame import find_duplicates
    from db_dedup.records import DuplicatePair, Explanation, GroupSummary, Match, ScanReport
    from db_dedup.schema.migrate import include_name

_HOMES = {
    "Database": "db_dedup.app",
    "Deduplicator": "db_dedup.app",
    "DedupError": "db_dedup.errors",
    "DuplicatePair": "db_dedup.records",
    "Explanation": "db_dedup.records",
    "GroupSummary": "db_dedup.records",
    "Match": "db_dedup.records",
    "ScanReport": "db_dedup.records",
    "Settings": "db_dedup.config",
    "Text": "db_dedup.config",
    "Value": "db_dedup.config",
    "WatchedTable": "db_dedup.config",
    "find_duplicates": "db_dedup.frames.data_frame",
    "include_name": "db_dedup.schema.migrate",
    "view_aside": "db_dedup.app",
}

__all__ = [
    "Database",
    "DedupError",
    "Deduplicator",
    "DuplicatePair",
    "Explanation",
    "GroupSummary",
    "Match",
    "ScanReport",
    "Settings",
    "Text",
    "Value",
    "WatchedTable",
    "find_duplicates",
    "include_name",
    "view_aside",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `import db_dedup` itself stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
