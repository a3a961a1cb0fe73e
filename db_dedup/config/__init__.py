"""What the user sets: which table, which columns, which rule. From TOML, from Python, or as stored.

Precedence everywhere: command-line flag, then environment variable, then `dedup.toml`, then the default.
"""

from db_dedup.config.engine import EngineSettings
from db_dedup.config.rule import DEFAULT_PRESET, PRESETS, Measure, Rule
from db_dedup.config.schedule import ScheduleSettings
from db_dedup.config.server import ServerSettings
from db_dedup.config.settings import Settings, database_url, store_url
from db_dedup.config.table import ColumnWeight, Text, Value, WatchedTable, Within, watched_table

__all__ = [
    "DEFAULT_PRESET",
    "PRESETS",
    "ColumnWeight",
    "EngineSettings",
    "Measure",
    "Rule",
    "ScheduleSettings",
    "ServerSettings",
    "Settings",
    "Text",
    "Value",
    "WatchedTable",
    "Within",
    "database_url",
    "store_url",
    "watched_table",
]
