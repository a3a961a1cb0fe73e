"""Centralized processing: read a whole table, find every duplicate, switch the views to the new answer.

The last complete answer can be read until one transaction replaces it. A recipe serves if the views show its
answer. Under a recipe that does not serve yet, fingerprints and answer are written in short transactions, and
nobody sees them; the last one marks the recipe as the one that serves. After it, what is stored under the
former recipe is removed. Under the recipe that serves already, what changed is held in memory and written in
one transaction, so that fingerprints and answer always agree.
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection

from db_dedup.errors import ScanRunningError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.garbage import collecting_seldom
from db_dedup.jobs.objects.attachment import mark_stale
from db_dedup.jobs.review.labels import ScanLabels, labels_for, move_labels
from db_dedup.jobs.scan.answer import AnswerDifference
from db_dedup.jobs.scan.best_effort_steps import fold_index, give_up, refresh_statistics
from db_dedup.jobs.scan.covered_changes import delete_covered, read_covered
from db_dedup.jobs.scan.feature_sets import replace_sets
from db_dedup.jobs.scan.frozen_frames import NOTHING_FROZEN, FrozenFrames, freeze_frames
from db_dedup.jobs.scan.lease import Lease, is_fold, new_owner
from db_dedup.jobs.scan.reading import FindStored, Page, TableReading, is_stored, nothing_stored
from db_dedup.jobs.scan.removal import remove_answer, remove_recipe
from db_dedup.jobs.scan.report import report_of
from db_dedup.jobs.scan.scanned_table import ScannedRows, ScannedTable
from db_dedup.jobs.scan.short_transactions import OneTransaction, ShortTransactions
from db_dedup.jobs.scan.writing_ahead import AheadWriter, WritingAhead
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import ScanReport
from db_dedup.records.fingerprints import RowFingerprint, StoredFingerprint
from db_dedup.store import scans, watched_tables
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.found_at import FoundTimes
from db_dedup.store.frames import drop_other_frames, put_frames
from db_dedup.store.group_history import drop_old_changes, write_changes
from db_dedup.store.index_building import make_put_off_indexes, put_off_indexes
from db_dedup.store.sketches import drop_all_sketches
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

_ROWS_WORTH_NEW_INDEXES = 20_000
_MOST_PAGES_WAITING = 4
_FOLD_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class _Run:
    """One running scan.

    Attributes:
        store: the fingerprints of the table under the scan's recipe.
        scan_id: the scan's row in the table of scans.
        serves: the recipe serves already.
        is_resumed: the recipe does not serve, and an earlier scan has written a part of its answer.
        shown: the recipe that serves, if it is another one.
        former: the same, if the settings are the same and only the frames differ.
        frames: the list of the recipe, and its measurement.
    """

    store: FingerprintStore
    scan_id: int
    lease: Lease
    serves: bool
    is_resumed: bool
    shown: FingerprintStore | None = None
    former: FingerprintStore | None = None
    frames: FrozenFrames = NOTHING_FROZEN


class FullScan:
    """Scans one table once."""

    def __init__(self, context: JobContext, *, rebuild: bool = False) -> None:
        """Prepare to scan; `rebuild` segments every text, also of a row whose digest is the stored one."""
        self._context = context
        self._engine, self._dialect, self._tables = context.engine, context.dialect, context.tables
        self._watched, self._progress = context.watched, context.progress
        self._rebuild = rebuild
        self._started = time.monotonic()

    @collecting_seldom()
    def run(self) -> ScanReport:
        """Scan.

        Raises:
            ScanRunningError: another scan of the table is running.
        """
        self._started = time.monotonic()
        self._wait_for_fold()
        owner = new_owner()
        try:
            run = self._begin(owner)
            with run.lease:
                covered = read_covered(self._context, run.store, owner)
                report = self._scan(run)
                refresh_statistics(self._context)
            fold_index(self._context, run.store)
            handled = delete_covered(self._context, covered)
        except BaseException as error:
            give_up(self._context, owner, error)
            raise
        return replace(report, seconds=self._seconds(), handled_changes=handled)

    def _scan(self, run: _Run) -> ScanReport:
        # Processes for fingerprints start here, and are ready when the frames have been measured.
        with TableReading(self._context) as reading:
            run = self._with_frames(run)
            reading.leave_out(self._context.frames)
            if not run.serves and reading.total >= _ROWS_WORTH_NEW_INDEXES:
                put_off_indexes(self._engine, self._dialect, self._tables)
            kept_back = self._read(run, reading)
            labels = labels_for(self._context)
            rows = reading.rows(labels.rejected)
            kept_back |= _by_key(reading.scan.reread)
            with self._writing_ahead(run, rows, kept_back) as ahead:
                scanned = rows.with_pairs()
                report = report_of(self._context, reading, scanned, run.frames, self._seconds())
                report = self._switch(run, list(kept_back.values()), scanned, report, labels, ahead)
            self._remove_former(run)
        return report

    def _seconds(self) -> float:
        """Return the seconds since the scan began."""
        return round(time.monotonic() - self._started, 3)

    def _wait_for_fold(self) -> None:
        """Wait while the index is folded, which takes seconds; refuse where a scan is running."""
        holder = self._lease_holder()
        if holder is not None and is_fold(holder):
            self._progress.start("waiting for the index to be folded", None)
            while holder is not None and is_fold(holder):
                time.sleep(_FOLD_PAUSE_SECONDS)
                holder = self._lease_holder()
            self._progress.finish()
        self._refuse(holder)

    def _lease_holder(self) -> str | None:
        # Without a lock: a running scan may hold it for as long as its last transaction takes.
        with self._engine.connect() as connection:
            return watched_tables.lease_holder(connection, self._tables, self._watched.name)

    def _begin(self, owner: str) -> _Run:
        while (run := self._try_to_begin(owner)) is None:
            self._wait_for_fold()
        return run

    def _try_to_begin(self, owner: str) -> _Run | None:
        """Begin; None where a fold of the index has just taken the lease."""
        with self._dialect.write_transaction(self._engine) as connection:
            table_id = watched_tables.add_table(connection, self._tables, self._watched).id
            holder = watched_tables.take_lease(connection, self._tables, table_id, owner)
            if holder is not None and is_fold(holder):
                return None
            self._refuse(holder)
            # Read again: the lease may have waited for the end of another scan, which could have changed it.
            stored = watched_tables.add_table(connection, self._tables, self._watched).require_known()
            digest = self._watched.recipe_digest()
            recipe = self._recipe_to_scan(connection, stored)
            serves = recipe == stored.recipe
            store = FingerprintStore(self._dialect, self._tables, stored.id, recipe)
            has_other = not serves and stored.recipe is not None
            shown = replace(store, recipe=stored.recipe or 0) if has_other else None
            former = shown if stored.recipe_digest == digest else None
            is_resumed = not (serves or store.is_empty(connection))
            scan_id = scans.begin_scan(connection, self._tables, stored.id, recipe, digest, owner)
        lease = Lease(self._engine, self._dialect, self._tables, stored, owner)
        return _Run(store, scan_id, lease, serves, is_resumed, shown, former)

    def _recipe_to_scan(self, connection: Connection, stored: StoredTable) -> int:
        """Return the number of the recipe that serves if it is of these settings, or of one to build."""
        digest = self._watched.recipe_digest()
        serves = stored.recipe is not None and stored.recipe_digest == digest
        if stored.recipe is not None and serves:
            last = scans.recipe_of_last_scan(connection, self._tables, stored.id, digest)
            # A scan that was to replace drifted frames may have been interrupted: it is resumed.
            return stored.recipe if last is None or self._watched.frame_drift == "wait" else last
        return scans.recipe_to_build(connection, self._tables, stored.id, digest)

    def _with_frames(self, run: _Run) -> _Run:
        """Return the run with its list of frames, under a recipe of its own where the list is another one."""
        frozen = freeze_frames(
            self._context,
            run.store,
            serves=run.serves,
            is_resumed=run.is_resumed,
            rebuild=self._rebuild,
        )
        self._context = replace(self._context, frames=frozen.frames)
        run = replace(run, frames=replace(frozen, sample=None))  # a scan needs its memory
        if frozen.measured is None or (run.serves and not frozen.is_other):
            return run
        with self._dialect.write_transaction(self._engine) as connection:
            run.lease.fence(connection)
            if frozen.is_other:
                run = self._under_new_recipe(connection, run)
            put_frames(connection, self._tables, run.store.table_id, run.store.recipe, frozen.measured)
        return run

    def _under_new_recipe(self, connection: Connection, run: _Run) -> _Run:
        recipe = scans.unused_recipe(connection, self._tables, run.store.table_id)
        scans.move_scan(connection, self._tables, run.scan_id, recipe)
        own = replace(run.store, recipe=recipe)
        shown, former = (run.store, run.store) if run.serves else (run.shown, run.former)
        return replace(run, store=own, serves=False, is_resumed=False, shown=shown, former=former)

    def _refuse(self, holder: str | None) -> None:
        if holder is not None:
            raise ScanRunningError(
                "another scan of {name!r} is running (host:process {holder}); "
                "if it died, its lease ends within {lease} seconds",
                name=self._watched.name,
                holder=holder,
                lease=watched_tables.LEASE.seconds,
            )

    def _read(self, run: _Run, reading: TableReading) -> dict[str, RowFingerprint]:
        """Fingerprint all rows; return those whose new state is not written yet, by row key."""
        kept_back: dict[str, RowFingerprint] = {}
        pages = reading.pages(
            self._stored_finder(run), reuse=not self._rebuild, with_sketch_sizes=not run.serves
        )
        # The reading reports its own progress.
        waiting: list[Page] = []
        with closing(pages), self._pieces(run, NullProgress()) as pieces:
            for page in pages:
                if run.serves:
                    kept_back |= _by_key(row for row in page.rows if not is_stored(row, page.stored))
                    if self._rebuild:
                        replace_sets(pieces, run.store, page)
                    continue
                waiting.append(page)
                # Others get their gap to write in, while the next page is read.
                if len(waiting) == _MOST_PAGES_WAITING or not pieces.would_wait:
                    _write_pages(pieces, run.store, waiting)
            _write_pages(pieces, run.store, waiting)
        return kept_back

    def _writing_ahead(
        self, run: _Run, rows: ScannedRows, kept_back: Collection[str]
    ) -> AbstractContextManager[WritingAhead | None]:
        """Write what does not depend on pairs from now on, in a thread; None if it is not worth it."""
        is_unfit = rows.copy_of.size < _ROWS_WORTH_NEW_INDEXES or not self._dialect.is_shared(self._engine)
        if is_unfit or run.serves or run.is_resumed or kept_back:
            return nullcontext()
        writer = AheadWriter(self._engine, self._dialect, run.store, run.lease, is_first=run.former is None)
        return WritingAhead(writer, rows)

    def _pieces(self, run: _Run, progress: Progress) -> ShortTransactions:
        return ShortTransactions(self._engine, self._dialect, run.lease, progress)

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
        labels: ScanLabels,
        ahead: WritingAhead | None,
    ) -> ScanReport:
        """Write the answer and let the views show it; return the report with what it changed."""
        built = None
        if not run.serves:
            built = self._build(run, changed, scanned, ahead)
            make_put_off_indexes(self._engine, self._dialect, self._tables, run.lease.fence, self._progress)
        else:
            self._progress.start("writing the answer", len(changed))
        with self._dialect.write_transaction(self._engine) as connection:
            run.lease.fence(connection)
            move_labels(connection, self._context, labels)
            difference = built or self._write_changes(connection, run, changed, scanned)
            write_changes(connection, run.store, difference.regrouped, run.scan_id)
            drop_old_changes(connection, run.store)
            # Only the commit and the removal of the former recipe are missing from what is stored.
            report = replace(report, **asdict(difference.changes), seconds=self._seconds())
            watched_tables.serve_recipe(
                connection, self._tables, run.store.table_id, self._watched, run.store.recipe
            )
            if run.serves and run.frames.measured is not None:
                put_frames(
                    connection, self._tables, run.store.table_id, run.store.recipe, run.frames.measured
                )
            mark_stale(connection, self._context, run.store.table_id)
            scans.finish_scan(connection, self._tables, run.scan_id, report)
            if not run.store.other_recipes(connection):
                self._drop_lease(connection, run)
        self._progress.finish()
        return report

    def _build(
        self,
        run: _Run,
        changed: Sequence[RowFingerprint],
        scanned: ScannedTable,
        ahead: WritingAhead | None,
    ) -> AnswerDifference:
        """Write the answer of a recipe that does not serve yet, in short transactions."""
        written = None
        if ahead is not None:
            self._progress.start("writing what needs no pairs", 1)
            written = ahead.written()
            self._progress.advance(1)
        with self._pieces(run, self._progress) as pieces:
            if run.is_resumed:
                remove_answer(pieces, run.store, self._progress)
            keys = {row.row_key for row in changed}
            difference = AnswerDifference.of(
                pieces.reader, run.store, scanned, keys, serves=False, ahead=written, shown=run.shown
            )
            self._progress.start("writing the answer", len(changed) + difference.count)
            for connection, part in pieces.parts(changed):
                stored = run.store.find_rows(connection, [row.row_key for row in part])
                run.store.put_rows(connection, part, stored)
            found = FoundTimes.carried_over(pieces.reader, run.former, run.store, scanned.row_keys)
            difference.write(pieces, run.store, utc_now(), found)
        return difference

    def _write_changes(
        self,
        connection: Connection,
        run: _Run,
        changed: Sequence[RowFingerprint],
        scanned: ScannedTable,
    ) -> AnswerDifference:
        """Write what has changed under the recipe that serves, in the transaction of the switch."""
        writing = OneTransaction(connection, self._dialect, self._progress)
        for _, part in writing.parts(changed):
            stored = run.store.find_rows(connection, [row.row_key for row in part])
            run.store.put_rows(connection, part, stored)
        self._progress.finish()
        if self._rebuild:
            drop_all_sketches(connection, run.store)
        keys = {row.row_key for row in changed}
        difference = AnswerDifference.of(writing.reader, run.store, scanned, keys, serves=True)
        self._progress.start("writing pairs and groups", difference.count)
        difference.write(writing, run.store, utc_now())
        return difference

    def _remove_former(self, run: _Run) -> None:
        """Remove what is stored under all other recipes, and give the lease back."""
        with self._engine.connect() as connection:
            former = run.store.other_recipes(connection)
        if not former:
            return
        run.lease.let_answer_change()
        try:
            with self._pieces(run, self._progress) as pieces:
                for store in former:
                    remove_recipe(pieces, store, self._progress)
                self._drop_lease(pieces.connection(), run)
        except ScanRunningError:
            logger.info("another scan has taken over; it removes what is stored under former recipes")

    def _drop_lease(self, connection: Connection, run: _Run) -> None:
        """Remove what is left of former recipes, and give the lease back."""
        drop_other_frames(connection, self._tables, run.store.table_id, run.store.recipe)
        run.lease.drop(connection)


def _write_pages(pieces: ShortTransactions, store: FingerprintStore, pages: list[Page]) -> None:
    """Write pages of rows, commit, and empty the list."""
    for rows, stored in pages:
        for connection, part in pieces.parts(rows):
            store.put_rows(connection, part, stored, with_sketch_sizes=True)
    pages.clear()
    pieces.pause()


def _by_key(rows: Iterable[RowFingerprint]) -> dict[str, RowFingerprint]:
    return {row.row_key: row for row in rows}
