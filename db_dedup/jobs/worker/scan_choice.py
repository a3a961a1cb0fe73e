"""Whether the worker handles a batch of changes next, or scans the whole table instead."""

import logging
from datetime import datetime
from enum import Enum, auto
from typing import Final

from sqlalchemy import Connection

from db_dedup.errors import NotScannedError
from db_dedup.jobs.worker.frame_age import FrameAge
from db_dedup.jobs.worker.worker_table import WorkerTable
from db_dedup.store import changes, scans
from db_dedup.store.scans import FinishedScan
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

# A scan begins and ends with some statements that it does not count among its seconds.
_SECONDS_AROUND_A_SCAN: Final = 0.5
# Where one transaction writes at a time, a scan that writes its differences keeps all other writers out for
# several times as long as a batch does. So there it must save more than some of the time.
_TIMES_CHEAPER_FOR_ONE_WRITER: Final = 4


class Task(Enum):
    """What to do for a table next."""

    NOTHING = auto()
    BATCH = auto()
    REQUIRED_SCAN = auto()
    OPTIONAL_SCAN = auto()


class ScanChoice:
    """Chooses the next task for one table.

    Attributes:
        frames: whether a scan should measure the frames of the table again.
        may_prefer_scan: scan where that is cheaper than batches, or for frames; False after such a scan has
            failed.
    """

    def __init__(self, table: WorkerTable) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table = table
        self.frames = FrameAge(table)
        self.may_prefer_scan = True

    def choose(self, connection: Connection, stored: StoredTable, rate: float | None) -> Task:
        """Choose the next task.

        Args:
            connection: reads our tables.
            stored: what is stored of the table.
            rate: changes a second that batches handle; None or 0 while it is not known.

        Raises:
            NotScannedError: the table has no triggers.
        """
        last = scans.last_finished(connection, self._table.tables, stored.id)
        if self._is_required(stored, last):
            return Task.REQUIRED_SCAN
        may_prefer_scan = self.may_prefer_scan and self._would_scan_alike(last)
        if may_prefer_scan and self.frames.wants_scan(connection, stored):
            return Task.OPTIONAL_SCAN
        # Without a look at the queue first, an idle worker would lock and write all day.
        if not changes.count_waiting(connection, self._table.tables, stored.id, at_most=1):
            return Task.NOTHING
        is_cheaper = may_prefer_scan and self._prefers_scan(connection, stored, last, rate)
        return Task.OPTIONAL_SCAN if is_cheaper else Task.BATCH

    def requires_scan(self, connection: Connection, stored: StoredTable) -> bool:
        """Return whether a scan must come before batches; raises NotScannedError as `choose`."""
        return self._is_required(stored, scans.last_finished(connection, self._table.tables, stored.id))

    def _is_required(self, stored: StoredTable, last: FinishedScan | None) -> bool:
        """Return whether rows may have changed before there were triggers, and after the last scan began."""
        name = self._table.name
        if stored.attached_at is None:
            raise NotScannedError("{name!r} has no triggers: run `db-dedup attach {name}` first", name=name)
        return last is None or stored.recipe is None or not last.is_after(stored.attached_at)

    def _would_scan_alike(self, last: FinishedScan | None) -> bool:
        """Return whether the last scan was by the engine that the worker would use.

        What a cluster has scanned in minutes may take one machine hours, or not fit into its memory.
        """
        return last is None or last.engine in (None, self._table.engine_name)

    def _prefers_scan(
        self, connection: Connection, stored: StoredTable, last: FinishedScan | None, rate: float | None
    ) -> bool:
        """Return whether a scan takes less time than what has been queued since the last one.

        Where one transaction writes at a time, it must take less than a fourth of that time.
        """
        if last is None or not rate:
            return False
        times = _TIMES_CHEAPER_FOR_ONE_WRITER if self._table.dialect.capabilities.one_writer else 1
        break_even = int(times * rate * (last.seconds + _SECONDS_AROUND_A_SCAN))
        since = _queued_since(last, stored)
        tables = self._table.tables
        waiting = changes.count_waiting(connection, tables, stored.id, since, at_most=break_even + 1)
        if waiting <= break_even:
            return False
        logger.info("more than %d changes of %s wait: a scan is cheaper", break_even, self._table.name)
        return True


def _queued_since(last: FinishedScan, stored: StoredTable) -> datetime:
    return max(last.started_at, stored.attached_at or last.started_at)
