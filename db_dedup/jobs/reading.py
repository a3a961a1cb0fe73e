"""Read a whole table and fingerprint it, page after page: what every job over all rows begins with."""

import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from sqlalchemy import Connection

from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess
from db_dedup.engines.embedded.spool import FeatureSpool
from db_dedup.engines.embedded.table_scan import ScannedTable, TableScan
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.jobs.context import JobContext
from db_dedup.records import SourceRow
from db_dedup.store.fingerprints import RowFingerprint, StoredFingerprint
from db_dedup.store.verdicts import DigestPair

_ROWS_WORTH_A_PROCESS = 20_000

Page = tuple[list[RowFingerprint], Mapping[str, StoredFingerprint]]
"""Rows as they are now, and what is stored of them."""

FindStored = Callable[[Sequence[str]], Mapping[str, StoredFingerprint]]
"""Looks up what is stored of the rows of these keys."""


def nothing_stored(_: Sequence[str]) -> Mapping[str, StoredFingerprint]:
    """Every row is new."""
    return {}


def is_stored(row: RowFingerprint, stored: Mapping[str, StoredFingerprint]) -> bool:
    """Whether the row is stored just as it is now."""
    old = stored.get(row.row_key)
    return old is not None and old.is_of(row)


class TableReading:
    """One pass over a table: `pages` to the end, then `match`."""

    def __init__(self, context: JobContext, snapshot: Connection | None = None) -> None:
        """Take the context's table; read it through this snapshot, or else through one of its own."""
        self._engine, self._source = context.source_engine, context.source
        self._watched, self._progress = context.watched, context.progress
        self._snapshot = snapshot
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Count the rows and prepare the fingerprinter, in a process of its own where that is worth it."""
        with self._engine.connect() as connection:
            self._total = self._source.count(connection)
        with ExitStack() as resources:
            spool = FeatureSpool(keep_weights=self._watched.rule.similarity == "cosine")
            resources.enter_context(spool)
            self._thread = ThreadPoolExecutor(max_workers=1)
            # After the process has ended, so that the page at work there is waited for no longer.
            resources.callback(self._thread.shutdown, cancel_futures=True)
            families = [column.family for column in self._source.key_columns]
            self.scan = TableScan(self._watched, families, spool, self._fingerprinter(resources))
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and remove the temporary files."""
        self._resources.close()

    def pages(
        self, find_stored: FindStored, *, reuse: bool = True, with_sketches: bool = False
    ) -> Generator[Page, None, None]:
        """Each page of rows with what is stored of them: one page is read and another handled by the caller
        while a thread waits for the fingerprints of the one between. Close it if it is not read to its end.

        Args:
            find_stored: looks up what is stored of a page.
            reuse: do not segment a row again whose digest is the stored one.
            with_sketches: give the rows with their bands.
        """
        self._progress.start("fingerprints", self._total)
        before: tuple[Future[list[RowFingerprint]], Mapping[str, StoredFingerprint]] | None = None
        with closing(self._read_pages()) as pages:
            for page in pages:
                stored = find_stored([row.row_key for row in page])
                known = stored if reuse else {}
                current = (
                    self._thread.submit(self.scan.add_page, page, known, with_sketches=with_sketches),
                    stored,
                )
                if before is not None:
                    yield self._done(before[0]), before[1]
                before = current
            if before is not None:
                yield self._done(before[0]), before[1]
        self._progress.finish()

    def match(self, rejected: Collection[DigestPair]) -> ScannedTable:
        """Find all duplicates among the rows of all pages, but for rejected pairs of texts."""
        return self.scan.match(self._progress, self._read_rows, rejected)

    def _done(self, page: Future[list[RowFingerprint]]) -> list[RowFingerprint]:
        rows = page.result()
        self._progress.advance(len(rows))
        return rows

    def _read_pages(self) -> Generator[list[SourceRow], None, None]:
        if self._snapshot is not None:
            return self._source.read_pages(self._snapshot)
        return self._source.pages(self._engine)

    def _read_rows(self, row_keys: Sequence[str]) -> list[SourceRow]:
        with self._engine.connect() as connection:
            return list(self._source.read_rows(connection, row_keys))

    def _fingerprinter(self, resources: ExitStack) -> Fingerprinter | FingerprintProcess:
        if self._total < _ROWS_WORTH_A_PROCESS or not sys.executable:
            return Fingerprinter(self._watched)
        return resources.enter_context(FingerprintProcess(self._watched))
