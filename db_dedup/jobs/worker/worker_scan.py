"""A full scan that the worker runs, because it must or because it is cheaper than batches."""

import logging
import time

from db_dedup.errors import ScanRunningError
from db_dedup.jobs.worker.ended_scans import EndedScans
from db_dedup.jobs.worker.worker_table import Batch, WorkerTable

logger = logging.getLogger(__name__)


class WorkerScan:
    """Scans one table, as often as it is asked to."""

    def __init__(self, table: WorkerTable) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table = table
        self._ended_scans = EndedScans(table.name)

    def run(self) -> Batch | None:
        """Scan the table; None where another scan of it is running.

        Raises:
            DedupError: the scan failed. The server ended several scans in a row: the error is not transient.
        """
        started = time.monotonic()
        try:
            report = self._table.scan()
        except ScanRunningError:
            return None
        except Exception as error:
            raise self._ended_scans.judged(error) from error
        self._ended_scans.reset()
        name = self._table.name
        logger.info("%s was scanned", name, extra={"table": name, "pairs": report.pairs})
        return Batch(name, report.handled_changes, 0, time.monotonic() - started, is_scan=True)
