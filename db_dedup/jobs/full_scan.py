"""Centralized processing: read a whole table, find every duplicate, switch the views to the new answer.

The last complete answer stays readable until one transaction replaces it. Under a recipe that does not serve
yet, fingerprints are written as they come, beside those that do; under the one that serves, what changed is
kept back until the switch, so that fingerprints and answer never tell different stories.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace

import numpy as np
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.errors import DedupError, ScanRunningError
from db_dedup.jobs.answer import write_answer
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.lease import Lease, new_owner
from db_dedup.jobs.reading import FindStored, TableReading, is_stored, nothing_stored
from db_dedup.jobs.verdicts import ScanVerdicts, move_verdicts, verdicts_for
from db_dedup.records import ScanReport
from db_dedup.store import scans, watched_tables
from db_dedup.store.bands import drop_all_bands
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint, StoredFingerprint

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Run:
    """One scan at work: where it writes, its number, its lease, and whether its recipe serves already."""

    store: FingerprintStore
    scan_id: int
    lease: Lease
    serves: bool


class FullScan:
    """Scans one table once."""

    def __init__(self, context: JobContext, *, afresh: bool = False) -> None:
        """Prepare to scan; `afresh` segments every text, also of a row whose digest is the stored one."""
        self._context = context
        self._engine, self._dialect, self._tables = context.engine, context.dialect, context.tables
        self._watched, self._progress = context.watched, context.progress
        self._afresh = afresh

    def run(self) -> ScanReport:
        """Scan.

        Raises:
            ScanRunningError: another scan of the table is at work.
        """
        started = time.monotonic()
        run = self._begin()
        try:
            with run.lease, TableReading(self._context) as reading:
                kept_back = self._read(run, reading)
                verdicts = verdicts_for(self._context)
                scanned = reading.match(verdicts.rejected)
                seconds = time.monotonic() - started
                report = report_of(self._context, reading, scanned, seconds)
                kept_back |= _by_key(reading.scan.reread)
                report = self._switch(run, list(kept_back.values()), scanned, report, verdicts)
        except BaseException as error:
            self._give_up(run, error)
            raise
        return report

    def _begin(self) -> _Run:
        owner = new_owner()
        with self._engine.connect() as connection:
            # Without a lock: the one at work may be in the middle of its long switch.
            self._refuse(watched_tables.lease_holder(connection, self._tables, self._watched.name))
        with self._dialect.write_transaction(self._engine) as connection:
            table_id = watched_tables.add_table(connection, self._tables, self._watched).id
            self._refuse(watched_tables.take_lease(connection, self._tables, table_id, owner))
            # Read again: the scan whose end the lease may have waited for could have changed it.
            stored = watched_tables.add_table(connection, self._tables, self._watched)
            digest = self._watched.recipe_digest()
            serves = stored.recipe_digest == digest
            recipe = stored.recipe if serves else None
            if recipe is None:
                recipe = scans.recipe_to_build(connection, self._tables, stored.id, digest)
            store = FingerprintStore(self._dialect, self._tables, stored.id, recipe)
            scan_id = scans.begin_scan(connection, self._tables, stored.id, recipe, digest, owner)
        lease = Lease(self._engine, self._dialect, self._tables, stored, owner)
        return _Run(store, scan_id, lease, serves)

    def _refuse(self, holder: str | None) -> None:
        if holder is not None:
            raise ScanRunningError(
                f"a scan of {self._watched.name!r} is at work (host:process {holder}); "
                f"if it died, its lease ends within {watched_tables.LEASE.seconds} seconds"
            )

    def _read(self, run: _Run, reading: TableReading) -> dict[str, RowFingerprint]:
        """Fingerprint all rows; gives those whose new state is not written yet, by row key."""
        kept_back: dict[str, RowFingerprint] = {}
        pages = reading.pages(self._stored_finder(run), reuse=not self._afresh, with_sketches=not run.serves)
        with closing(pages):
            for rows, stored in pages:
                if run.serves:
                    kept_back |= _by_key(row for row in rows if not is_stored(row, stored))
                    continue
                with self._dialect.write_transaction(self._engine) as connection:
                    run.lease.fence(connection)
                    run.store.put_rows(connection, rows, stored, with_sketches=True)
        return kept_back

    def _stored_finder(self, run: _Run) -> FindStored:
        with self._engine.connect() as connection:
            if run.store.is_empty(connection):
                return nothing_stored

        def find(row_keys: Sequence[str]) -> Mapping[str, StoredFingerprint]:
            with self._engine.connect() as connection:
                return run.store.find_rows(connection, row_keys)

        return find

    def _switch(
        self,
        run: _Run,
        changed: Sequence[RowFingerprint],
        scanned: ScannedTable,
        report: ScanReport,
        verdicts: ScanVerdicts,
    ) -> ScanReport:
        """In one transaction: write the answer, forget what is gone, let the views show it. Gives the report
        with what it changed."""
        self._progress.start("writing the answer", None)
        with self._dialect.write_transaction(self._engine) as connection:
            run.lease.fence(connection)
            stored = run.store.find_rows(connection, [row.row_key for row in changed])
            run.store.put_rows(connection, changed, stored)
            if run.serves and self._afresh:
                drop_all_bands(connection, run.store)
            changed_keys = {row.row_key for row in changed}
            changes = write_answer(connection, run.store, scanned, changed_keys, serves=run.serves)
            report = replace(report, **asdict(changes))
            run.store.delete_other_recipes(connection)
            move_verdicts(connection, self._tables, run.store.table_id, verdicts)
            watched_tables.serve_recipe(
                connection, self._tables, run.store.table_id, self._watched, run.store.recipe
            )
            scans.finish_scan(connection, self._tables, run.scan_id, report)
            run.lease.drop(connection)
        self._refresh_statistics()
        self._progress.finish()
        return report

    def _refresh_statistics(self) -> None:
        """Only the speed of look-ups hangs on it: the scan is done, whatever becomes of this."""
        try:
            for table in (self._tables.fingerprint, self._tables.pair):
                self._dialect.refresh_statistics(self._engine, table)
        except SQLAlchemyError as error:
            logger.warning("statistics not refreshed: %s", self._dialect.translate_error(error))

    def _give_up(self, run: _Run, error: BaseException) -> None:
        """Leave a word of what happened, if the database still listens; the lease ends by itself if not."""
        try:
            reason = self._reason(error)
            with self._dialect.write_transaction(self._engine) as connection:
                scans.fail_scan(connection, self._tables, run.scan_id, reason)
                run.lease.drop(connection)
        except Exception as second:  # the first error is the one to report
            error.add_note(f"the scan could not be marked as failed: {type(second).__name__}")

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, SQLAlchemyError):
            error = self._dialect.translate_error(error)
        return str(error) if isinstance(error, DedupError) else type(error).__name__


def _by_key(rows: Iterable[RowFingerprint]) -> dict[str, RowFingerprint]:
    return {row.row_key: row for row in rows}


def report_of(
    context: JobContext, reading: TableReading, scanned: ScannedTable, seconds: float
) -> ScanReport:
    """What a scan found, counted."""
    matches = scanned.matches
    grouped = matches.group_of[matches.group_of >= 0]
    fingerprints = int(np.count_nonzero(scanned.table.has_fingerprint))
    return ScanReport(
        table=context.watched.name,
        rows=len(scanned.row_keys),
        fingerprints=fingerprints,
        too_little_text=len(scanned.row_keys) - fingerprints,
        segmented=reading.scan.segmented_count,
        copies=int(np.count_nonzero(matches.copy_of >= 0)),
        pairs=int(matches.pairs.left.size),
        groups=int(np.unique(grouped).size),
        grouped_rows=int(grouped.size),
        rows_without_key=context.source.rows_without_key,
        seconds=round(seconds, 3),
    )
