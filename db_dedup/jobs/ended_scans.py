"""Scans that the server ends: by chance, or because the scan itself is too much for it."""

from typing import Final

from db_dedup.amounts import counted
from db_dedup.errors import DatabaseError, DedupError, StatementEndedError

_IN_A_ROW: Final = 3


class EndedScans:
    """Counts the scans of one table that the server ended one after another."""

    def __init__(self) -> None:
        self._count = 0

    def judged(self, error: DedupError) -> DedupError:
        """The error of a scan; one that ended several scans in a row as one that no retry mends."""
        if not isinstance(error, StatementEndedError):
            return error
        self._count += 1
        if self._count < _IN_A_ROW:
            return error
        return DatabaseError(f"{error}; this has ended {counted(self._count, 'scan')} in a row")

    def reset(self) -> None:
        """Note that a scan came to its end."""
        self._count = 0
