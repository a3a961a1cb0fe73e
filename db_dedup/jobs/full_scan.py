"""Centralized processing: read a whole table, find every duplicate, switch the views to the new answer.

The last complete answer stays readable until one transaction replaces it. A changed recipe is built beside
the one that serves; the same recipe is updated in place, row by row that changed.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess
from db_dedup.engines.embedded.spool import FeatureSpool
from db_dedup.engines.embedded.table_scan import ScannedTable, TableScan
from db_dedup.engines.fingerprinter import FingerprintedRows, Fingerprinter
from db_dedup.errors import DedupError, RowKeyError, ScanRunningError
from db_dedup.jobs.answer import write_answer
from db_dedup.progress import Progress
from db_dedup.records import ScanReport, SourceRow
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import to_signed
from db_dedup.store import scans, watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.source import Source

_RENEW_LEASE_SECONDS = 10
_ROWS_WORTH_A_PROCESS = 20_000


@dataclass(frozen=True)
class _Run:
    """One scan at work."""

    store: FingerprintStore
    scan_id: int
    owner: str


class FullScan:
    """Scans one table once."""

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        tables: Tables,
        watched: WatchedTable,
        source: Source,
        progress: Progress,
    ) -> None:
        self._engine = engine
        self._dialect = dialect
        self._tables = tables
        self._watched = watched
        self._source = source
        self._progress = progress
        self._renewed_at = 0.0

    def run(self) -> ScanReport:
        """Scan.

        Raises:
            ScanRunningError: another scan of the table is at work.
        """
        started = time.monotonic()
        run = self._begin()
        try:
            with FeatureSpool(keep_weights=self._watched.rule.similarity == "cosine") as spool:
                scan = self._read(run, spool)
                scanned = scan.match(self._progress)
                report = self._switch(run, scan, scanned, started)
        except BaseException as error:
            self._give_up(run, error)
            raise
        return report

    def _begin(self) -> _Run:
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        with self._dialect.write_transaction(self._engine) as connection:
            stored = watched_tables.add_table(connection, self._tables, self._watched)
            holder = watched_tables.take_lease(connection, self._tables, stored.id, owner)
            if holder is not None:
                raise ScanRunningError(
                    f"a scan of {self._watched.name!r} is at work (host:process {holder}); "
                    f"if it died, its lease ends within {watched_tables.LEASE.seconds} seconds"
                )
            serves = stored.recipe_digest == self._watched.recipe_digest()
            recipe = stored.recipe if serves and stored.recipe else (stored.recipe or 0) + 1
            store = FingerprintStore(self._dialect, self._tables, stored.id, recipe)
            scan_id = scans.begin_scan(connection, self._tables, stored.id, recipe, owner)
        self._renewed_at = time.monotonic()
        return _Run(store, scan_id, owner)

    def _read(self, run: _Run, spool: FeatureSpool) -> TableScan:
        """Fingerprint and write all rows; gives what the matching needs of them."""
        with self._engine.connect() as connection:
            total = self._source.count(connection)
            is_first = run.store.is_empty(connection)
        self._progress.start("fingerprints", total)
        with self._fingerprinter(total) as fingerprinter:
            scan = TableScan(
                self._watched, [c.family for c in self._source.key_columns], spool, fingerprinter
            )
            for page, done in self._fingerprinted(scan):
                with self._dialect.write_transaction(self._engine) as connection:
                    self._write_page(connection, run, page, done, is_first)
                    self._keep_lease(connection, run)
                self._progress.advance(len(page))
        self._progress.finish()
        return scan

    def _fingerprinter(self, rows: int) -> AbstractContextManager[Fingerprinter | FingerprintProcess]:
        """A process of its own where the table is worth starting one."""
        if rows < _ROWS_WORTH_A_PROCESS or not sys.executable:
            return nullcontext(Fingerprinter(self._watched))
        return FingerprintProcess(self._watched)

    def _fingerprinted(self, scan: TableScan) -> Iterator[tuple[list[SourceRow], FingerprintedRows]]:
        """Each page with its fingerprints: one page is read and another written while a thread waits for the
        fingerprints of the one between."""
        before: tuple[list[SourceRow], Future[FingerprintedRows]] | None = None
        with ThreadPoolExecutor(max_workers=1) as thread:
            for page in self._source.pages(self._engine):
                current = page, thread.submit(scan.add_page, page)
                if before is not None:
                    yield before[0], before[1].result()
                before = current
            if before is not None:
                yield before[0], before[1].result()

    def _write_page(
        self,
        connection: Connection,
        run: _Run,
        page: Sequence[SourceRow],
        done: FingerprintedRows,
        is_first: bool,
    ) -> None:
        known = {} if is_first else run.store.find_rows(connection, [row.row_key for row in page])
        new: dict[str, tuple[str, str | None, int | None, bytes]] = {}
        changed = []
        has_fingerprint = done.has_fingerprint.tolist()
        for i, (row, fingerprint) in enumerate(zip(page, done.fingerprints.tolist(), strict=True)):
            signed = to_signed(fingerprint) if has_fingerprint[i] else None
            old = known.get(row.row_key)
            if old is None:
                if row.row_key in new:
                    raise RowKeyError(f"two rows have the same key {row.row_key[:40]!r}: name a unique key")
                new[row.row_key] = (row.row_key, row.order_value, signed, done.digests[i])
            elif old[1:] != (done.digests[i], row.order_value, signed):
                changed.append((old[0], row.order_value, signed, done.digests[i]))
        run.store.insert_rows(connection, list(new.values()))
        run.store.update_rows(connection, changed)

    def _keep_lease(self, connection: Connection, run: _Run) -> None:
        if time.monotonic() - self._renewed_at < _RENEW_LEASE_SECONDS:
            return
        if not watched_tables.renew_lease(connection, self._tables, run.store.table_id, run.owner):
            raise ScanRunningError("this scan stood still for so long that another one has taken over")
        self._renewed_at = time.monotonic()

    def _switch(self, run: _Run, scan: TableScan, scanned: ScannedTable, started: float) -> ScanReport:
        """In one transaction: write the answer, forget what is gone, let the views show it."""
        self._progress.start("writing the answer", None)
        with self._dialect.write_transaction(self._engine) as connection:
            if not watched_tables.renew_lease(connection, self._tables, run.store.table_id, run.owner):
                raise ScanRunningError("this scan stood still for so long that another one has taken over")
            write_answer(connection, run.store, scanned)
            run.store.delete_other_recipes(connection)
            watched_tables.serve_recipe(
                connection, self._tables, run.store.table_id, self._watched, run.store.recipe
            )
            report = self._report(scan, scanned, time.monotonic() - started)
            scans.finish_scan(connection, self._tables, run.scan_id, report)
            watched_tables.drop_lease(connection, self._tables, run.store.table_id, run.owner)
        for table in (self._tables.fingerprint, self._tables.pair):
            self._dialect.refresh_statistics(self._engine, table)
        self._progress.finish()
        return report

    def _give_up(self, run: _Run, error: BaseException) -> None:
        """Leave a word of what happened, if the database still listens; the lease ends by itself if not."""
        reason = str(error) if isinstance(error, DedupError) else type(error).__name__
        try:
            with self._dialect.write_transaction(self._engine) as connection:
                scans.fail_scan(connection, self._tables, run.scan_id, reason)
                watched_tables.drop_lease(connection, self._tables, run.store.table_id, run.owner)
        except Exception as second:  # the first error is the one to report
            error.add_note(f"the scan could not be marked as failed: {type(second).__name__}")

    def _report(self, scan: TableScan, scanned: ScannedTable, seconds: float) -> ScanReport:
        matches = scanned.matches
        grouped = matches.group_of[matches.group_of >= 0]
        return ScanReport(
            table=self._watched.name,
            rows=scan.row_count,
            fingerprints=scan.fingerprint_count,
            too_little_text=scan.row_count - scan.fingerprint_count,
            copies=_count(matches.copy_of >= 0),
            pairs=int(matches.pairs.left.size),
            groups=int(np.unique(grouped).size),
            grouped_rows=int(grouped.size),
            rows_without_key=self._source.rows_without_key,
            seconds=round(seconds, 3),
        )


def _count(flags: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(flags))
