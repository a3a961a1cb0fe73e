"""Random histories of a watched table: what may happen in them, and how it is played on a database."""

from tests.worker.history.player import History, Place
from tests.worker.history.steps import (
    BASES,
    CLOSING,
    KEYS,
    OPENING,
    Interruption,
    Migration,
    Step,
    histories,
)

__all__ = [
    "BASES",
    "CLOSING",
    "KEYS",
    "OPENING",
    "History",
    "Interruption",
    "Migration",
    "Place",
    "Step",
    "histories",
]
