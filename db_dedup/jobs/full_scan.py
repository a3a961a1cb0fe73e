"""Centralized processing: read a whole table, find every duplicate, switch the views to the new answer.

The last complete answer stays readable until one transaction replaces it. Under a recipe that does not serve
yet, fingerprints and answer are written in pieces beside those that do. The last transaction is short: it
only says that the recipe serves. What the former recipe left is removed after it, in pieces. Under the recipe
that serves, what changed is kept back and written in that one transaction, so that fingerprints and answer
always agree.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace

import numpy as np
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.engines.embedded.table_scan import ScannedTable
from db_dedup.errors import DedupError, ScanRunningError
from db_dedup.jobs.answer import AnswerDifference
from db_dedup.jobs.answer_changes import AnswerChanges
from db_dedup.jobs.attachment import mark_stale
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.lease import Lease, new_owner
from db_dedup.jobs.pieces import OneTransaction, Pieces
from db_dedup.jobs.reading import FindStored, TableReading, is_stored, nothing_stored
from db_dedup.jobs.removal import remove_answer, remove_recipe
from db_dedup.jobs.verdicts import ScanVerdicts, move_verdicts, verdicts_for
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import ScanReport
from db_dedup.store import scans, watched_tables
from db_dedup.store.bands import drop_all_bands
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore, RowFingerprint, StoredFingerprint

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Run:
    """One running scan.

    Attributes:
        store: where it writes.
        scan_id: its number.
        serves: its recipe serves already.
        is_resumed: its recipe does not serve, and an earlier scan wrote some of it.
    """

    store: FingerprintStore
    scan_id: int
    lease: Lease
    serves: bool
    is_resumed: bool


class FullScan:
    """Scans one table once."""

    def __init__(self, context: JobContext, *, afresh: bool = False) -> None:
        """Prepare to scan; `afresh` segments every text, also of a row whose digest is the stored one."""
        self._context = context
        self._engine, self._dialect, self._tables = context.engine, context.dialect, context.tables
        self._watched, self._progress = context.watched, context.progress
        self._afresh = afresh
        self._started = time.monotonic()

    def run(self) -> ScanReport:
        """Scan.

        Raises:
            ScanRunningError: another scan of the table is at work.
        """
        self._started = time.monotonic()
        with self._engine.connect() as connection:
            # Without a lock: the one that is running may be in the middle of its switch.
            self._refuse(watched_tables.lease_holder(connection, self._tables, self._watched.name))
        owner = new_owner()
        try:
            run = self._begin(owner)
            with run.lease, TableReading(self._context) as reading:
                kept_back = self._read(run, reading)
                verdicts = verdicts_for(self._context)
                scanned = reading.match(verdicts.rejected)
                report = report_of(self._context, reading, scanned, self._seconds())
                kept_back |= _by_key(reading.scan.reread)
                report = self._switch(run, list(kept_back.values()), scanned, report, verdicts)
                self._remove_former(run)
                self._refresh_statistics()
        except BaseException as error:
            self._give_up(owner, error)
            raise
        return replace(report, seconds=self._seconds())

    def _seconds(self) -> float:
        """Seconds since the scan began."""
        return round(time.monotonic() - self._started, 3)

    def _begin(self, owner: str) -> _Run:
        with self._dialect.write_transaction(self._engine) as connection:
            table_id = watched_tables.add_table(connection, self._tables, self._watched).id
            self._refuse(watched_tables.take_lease(connection, self._tables, table_id, owner))
            # Read again: the scan whose end the lease may have waited for could have changed it.
            stored = watched_tables.add_table(connection, self._tables, self._watched).require_known()
            digest = self._watched.recipe_digest()
            serves = stored.recipe_digest == digest
            recipe = stored.recipe if serves else None
            if recipe is None:
                recipe = scans.recipe_to_build(connection, self._tables, stored.id, digest)
            store = FingerprintStore(self._dialect, self._tables, stored.id, recipe)
            is_resumed = not (serves or store.is_empty(connection))
            scan_id = scans.begin_scan(connection, self._tables, stored.id, recipe, digest, owner)
        lease = Lease(self._engine, self._dialect, self._tables, stored, owner)
        return _Run(store, scan_id, lease, serves, is_resumed)

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
        # The reading itself tells how far it is.
        with closing(pages), self._pieces(run, NullProgress()) as pieces:
            for rows, stored in pages:
                if run.serves:
                    kept_back |= _by_key(row for row in rows if not is_stored(row, stored))
                    continue
                for connection, part in pieces.parts(rows):
                    run.store.put_rows(connection, part, stored, with_sketches=True)
                pieces.pause()
        return kept_back

    def _pieces(self, run: _Run, progress: Progress) -> Pieces:
        return Pieces(self._engine, self._dialect, run.lease, progress)

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
        """Write the answer and let the views show it. Gives the report with what it changed."""
        built = None if run.serves else self._build(run, changed, scanned)
        if built is None:
            self._progress.start("writing the answer", len(changed))
        with self._dialect.write_transaction(self._engine) as connection:
            run.lease.fence(connection)
            move_verdicts(connection, self._context, verdicts)
            changes = built or self._write_changes(connection, run, changed, scanned)
            # Only the commit and the removal of the former recipe are missing from what is stored.
            report = replace(report, **asdict(changes), seconds=self._seconds())
            watched_tables.serve_recipe(
                connection, self._tables, run.store.table_id, self._watched, run.store.recipe
            )
            mark_stale(connection, self._context, run.store.table_id)
            scans.finish_scan(connection, self._tables, run.scan_id, report)
            if not run.store.other_recipes(connection):
                run.lease.drop(connection)
        self._progress.finish()
        return report

    def _build(self, run: _Run, changed: Sequence[RowFingerprint], scanned: ScannedTable) -> AnswerChanges:
        """Write the answer of a recipe that does not serve yet, in pieces."""
        with self._pieces(run, self._progress) as pieces:
            if run.is_resumed:
                remove_answer(pieces, run.store, self._progress)
            keys = {row.row_key for row in changed}
            difference = AnswerDifference.of(pieces.reader, run.store, scanned, keys, serves=False)
            self._progress.start("writing the answer", len(changed) + difference.count)
            for connection, part in pieces.parts(changed):
                stored = run.store.find_rows(connection, [row.row_key for row in part])
                run.store.put_rows(connection, part, stored)
            difference.write(pieces, run.store, utc_now())
        return difference.changes

    def _write_changes(
        self,
        connection: Connection,
        run: _Run,
        changed: Sequence[RowFingerprint],
        scanned: ScannedTable,
    ) -> AnswerChanges:
        """Write what has changed under the recipe that serves, in the transaction of the switch."""
        writing = OneTransaction(connection, self._dialect, self._progress)
        for _, part in writing.parts(changed):
            stored = run.store.find_rows(connection, [row.row_key for row in part])
            run.store.put_rows(connection, part, stored)
        self._progress.finish()
        if self._afresh:
            drop_all_bands(connection, run.store)
        keys = {row.row_key for row in changed}
        difference = AnswerDifference.of(writing.reader, run.store, scanned, keys, serves=True)
        self._progress.start("writing pairs and groups", difference.count)
        difference.write(writing, run.store, utc_now())
        return difference.changes

    def _remove_former(self, run: _Run) -> None:
        """Remove what is stored under recipes that no longer serve, or never did, and let the table go."""
        with self._engine.connect() as connection:
            former = run.store.other_recipes(connection)
        if not former:
            return
        run.lease.let_answer_change()
        try:
            with self._pieces(run, self._progress) as pieces:
                for store in former:
                    remove_recipe(pieces, store, self._progress)
                run.lease.drop(pieces.connection())
        except ScanRunningError:
            logger.info("another scan has taken over, and removes what former recipes left")

    def _refresh_statistics(self) -> None:
        """Only the speed of look-ups hangs on it: the scan is done, whatever becomes of this."""
        try:
            for table in (self._tables.fingerprint, self._tables.pair):
                self._dialect.refresh_statistics(self._engine, table)
        except SQLAlchemyError as error:
            logger.warning("statistics not refreshed: %s", self._dialect.translate_error(error))

    def _give_up(self, owner: str, error: BaseException) -> None:
        """Record what happened, and let the table go. If that fails the lease ends by itself."""
        try:
            reason = self._reason(error)
            with self._dialect.write_transaction(self._engine) as connection:
                scans.fail_scan(connection, self._tables, owner, reason)
                watched_tables.drop_lease(connection, self._tables, owner)
        except Exception as second:  # the first error is the one to report
            error.add_note(f"the scan could not be marked as failed: {type(second).__name__}")

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, KeyboardInterrupt):
            return f"interrupted by {error}" if str(error) else "interrupted"
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
    sizes = np.unique_counts(grouped).counts
    fingerprints = int(np.count_nonzero(scanned.table.has_fingerprint))
    return ScanReport(
        table=context.watched.name,
        rows=len(scanned.row_keys),
        fingerprints=fingerprints,
        too_little_text=len(scanned.row_keys) - fingerprints,
        segmented=reading.scan.segmented_count,
        copies=int(np.count_nonzero(matches.copy_of >= 0)),
        pairs=int(matches.pairs.left.size),
        groups=int(sizes.size),
        grouped_rows=int(grouped.size),
        largest_group=int(sizes.max(initial=0)),
        rows_without_key=context.source.rows_without_key,
        seconds=round(seconds, 3),
    )
