"""Scans that the server ends: by chance, or because the scan needs more than the server has."""

from typing import Final

from db_dedup.errors import DatabaseError, DedupError, StatementEndedError

_IN_A_ROW: Final = 3


class EndedScans:
    """Counts how many scans of one table in a row the server has ended."""

    def __init__(self, table: str) -> None:
        """Begin at zero for the table of this name."""
        self._table, self._count = table, 0

    def judged(self, error: DedupError) -> DedupError:
        """Return the error of a scan, but no transient one once the server has ended several in a row."""
        if not isinstance(error, StatementEndedError):
            return error
        self._count += 1
        if self._count < _IN_A_ROW:
            return error
        return DatabaseError(
            "{error}; this has ended {scans} scans in a row: look for the cause in the server's log, "
            "then run `db-dedup scan {table}`",
            error=error,
            scans=self._count,
            table=self._table,
        )

    def reset(self) -> None:
        """Note that a scan has finished."""
        self._count = 0
