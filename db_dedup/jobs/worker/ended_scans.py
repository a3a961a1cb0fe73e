"""Scans that fail: which error a worker or a schedule reports, and whether a retry may help."""

from typing import Final

from db_dedup.errors import DatabaseError, DedupError, StatementEndedError, TooMuchAtOnceError
from db_dedup.translation import Phrase

_IN_A_ROW: Final = 3


class EndedScans:
    """Counts how many scans of one table in a row the server has ended."""

    def __init__(self, table: str) -> None:
        """Begin at zero for the table of this name."""
        self._table, self._count = table, 0

    def judged(self, error: Exception) -> DedupError:
        """Return the error to report for one that ended a scan, but no transient one once the server has
        ended several in a row.

        Of an error that is not of ours, such as one of a segmenter, only the type is shown: its message may
        show a text.
        """
        if isinstance(error, MemoryError):
            return TooMuchAtOnceError(Phrase("not enough memory"))
        if not isinstance(error, DedupError):
            return DedupError(
                "the scan of {table!r} failed with {error_type}: `db-dedup scan {table}` shows where",
                table=self._table,
                error_type=type(error).__name__,
            )
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
