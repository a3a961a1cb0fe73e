"""Whether a table has grown so much that its frames should be measured again.

Frames are measured by scans alone. A table with few rows has an empty list, and a list that was measured on
half of the rows may miss a form that came into use since. So the worker scans once when a table passes the
number of rows from which frames are looked for, and each time it has doubled since its list was measured.
"""

import logging

from sqlalchemy import Connection

from db_dedup.flow.text import frames as frame_texts
from db_dedup.jobs.worker.worker_table import WorkerTable
from db_dedup.store.frames import FrameSize, count_rows, read_size
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)


class FrameAge:
    """Compares how many rows a table has with how many it had when its frames were measured.

    Rows are counted when a worker begins, and then only when the changes that it has handled since could have
    made the table large enough: to count the rows of a large table takes a while.
    """

    def __init__(self, table: WorkerTable) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table = table
        self._recipe: int | None = None
        self._most_rows: int | None = None
        self._is_due = True
        self._asked_at = 0

    def note_changes(self, count: int) -> None:
        """Note that so many changes were handled: each may have been a new row."""
        if self._most_rows is not None:
            self._most_rows += count
        self._is_due = True

    def wants_scan(self, connection: Connection, stored: StoredTable) -> bool:
        """Return whether a scan should measure the frames of the table again."""
        if stored.recipe != self._recipe:
            self._recipe, self._is_due, self._most_rows = stored.recipe, True, None
        watched = stored.watched
        if not self._is_due or stored.recipe is None:
            return False
        self._is_due = False
        if not watched.rule.frames or watched.frame_drift == "wait":
            return False
        size = read_size(connection, self._table.tables, stored.id, stored.recipe)
        return size is not None and self._has_outgrown(connection, stored, size)

    def _has_outgrown(self, connection: Connection, stored: StoredTable, size: FrameSize) -> bool:
        least = frame_texts.LEAST_ROWS
        # The sample of a larger table can have too few texts for another reason: they are equal or very long.
        is_first = size.row_count < least
        wanted = least if is_first else 2 * max(size.row_count, least)
        if self._most_rows is not None and self._most_rows < wanted:
            return False
        self._most_rows = rows = count_rows(connection, self._table.store(stored), canonical_only=is_first)
        # The scan may find fewer rows, as where some are deleted meanwhile: it is not repeated for as many.
        if rows < max(wanted, 2 * self._asked_at):
            return False
        self._asked_at = rows
        logger.info("%s has %d rows: a scan measures its frames", self._table.name, rows)
        return True
