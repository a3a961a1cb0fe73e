"""Read a whole table and fingerprint it, page after page: the first step of every job over all rows."""

from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from types import TracebackType
from typing import NamedTuple, Self

from sqlalchemy import Connection

from db_dedup.engines.base import PageScan, ReadingScan
from db_dedup.flow.threads import starting_threads
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.scan.scanned_table import ScannedRows, ScannedTable
from db_dedup.records import SourceRow
from db_dedup.records.fingerprints import DigestPair, RowFingerprint, StoredFingerprint
from db_dedup.records.frames import FrameList


class Page(NamedTuple):
    """Rows as they are now, and by row key what is stored of them."""

    rows: list[RowFingerprint]
    stored: Mapping[str, StoredFingerprint]


class _SubmittedPage(NamedTuple):
    rows: Future[list[RowFingerprint]]
    stored: Mapping[str, StoredFingerprint]


FindStored = Callable[[Sequence[str]], Mapping[str, StoredFingerprint]]
"""Looks up what is stored of the rows of these keys."""


def nothing_stored(_: Sequence[str]) -> Mapping[str, StoredFingerprint]:
    """Find nothing: every row is new."""
    return {}


def is_stored(row: RowFingerprint, stored: Mapping[str, StoredFingerprint]) -> bool:
    """Return whether the row is stored as it is now."""
    old = stored.get(row.row_key)
    return old is not None and old.is_of(row)


class TableReading:
    """One pass over a table: call `pages` and read it to its end, then `match`.

    Attributes:
        total: how many rows there were at its beginning.
    """

    def __init__(self, context: JobContext, snapshot: Connection | None = None) -> None:
        """Take the context's table; read it through this snapshot, or through a new one."""
        self._engine, self._source = context.source_engine, context.source
        self._watched, self._progress = context.watched, context.progress
        self._matching_engine, self._recipe = context.matching_engine, context.recipe
        self._snapshot = snapshot
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Count the rows and prepare the fingerprinter, in processes of its own where that is worth it."""
        with self._engine.connect() as connection:
            self.total = self._source.count(connection)
        with ExitStack() as resources:
            # After the engine has ended, so that the pages it is at are waited for no longer.
            threads = resources.enter_context(ExitStack())
            families = [column.family for column in self._source.key_columns]
            scan = self._matching_engine.scan(self._watched, self._recipe, families, self.total)
            self.scan = resources.enter_context(scan)
            at_once = self.scan.pages_at_once if isinstance(self.scan, PageScan) else 1
            self._threads = ThreadPoolExecutor(max_workers=at_once)
            threads.callback(self._threads.shutdown, cancel_futures=True)
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and remove the temporary files."""
        self._resources.close()

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of all texts; call it before `pages`, if the context has none yet."""
        self.scan.leave_out(frames)

    def pages(
        self, find_stored: FindStored, *, reuse: bool = True, with_sketch_sizes: bool = False
    ) -> Generator[Page, None, None]:
        """Yield each page of rows with what is stored of them. Close it if you do not read it to its end.

        While threads wait for the fingerprints of some pages, the next page is read, and the caller handles
        the one before them.

        Args:
            find_stored: looks up what is stored of a page.
            reuse: do not segment a row again whose digest is the stored one.
            with_sketch_sizes: give the rows with the sizes of their sketches.
        """
        self._progress.start("fingerprints", self.total)
        pages = self._pages_of(self.scan, find_stored, reuse=reuse, with_sketch_sizes=with_sketch_sizes)
        with closing(pages):
            for page in pages:
                self._progress.advance(len(page.rows))
                yield page
        self._progress.finish()

    def _pages_of(
        self,
        scan: PageScan | ReadingScan,
        find_stored: FindStored,
        *,
        reuse: bool,
        with_sketch_sizes: bool,
    ) -> Generator[Page, None, None]:
        if isinstance(scan, PageScan):
            yield from self._given_pages(scan, find_stored, reuse=reuse, with_sketch_sizes=with_sketch_sizes)
            return
        for rows in scan.read_table(self._source, self._engine, with_sketch_sizes=with_sketch_sizes):
            yield Page(rows, find_stored([row.row_key for row in rows]))

    def _given_pages(
        self, scan: PageScan, find_stored: FindStored, *, reuse: bool, with_sketch_sizes: bool
    ) -> Generator[Page, None, None]:
        """Read the pages here, and give them to the engine."""
        submitted: deque[_SubmittedPage] = deque()
        with closing(self._read_pages()) as pages:
            for page in pages:
                stored = find_stored([row.row_key for row in page])
                known = stored if reuse else {}
                with starting_threads():
                    rows = self._threads.submit(
                        scan.add_page, page, known, with_sketch_sizes=with_sketch_sizes
                    )
                submitted.append(_SubmittedPage(rows, stored))
                if len(submitted) > scan.pages_at_once:
                    yield _done(submitted.popleft())
            while submitted:
                yield _done(submitted.popleft())

    def match(self, rejected: Collection[DigestPair]) -> ScannedTable:
        """Find all duplicates among the rows of all pages, except rejected pairs of texts."""
        return self.rows(rejected).with_pairs()

    def rows(self, rejected: Collection[DigestPair]) -> ScannedRows:
        """Return all rows; `with_pairs` of these does the rest of what `match` does."""
        return ScannedRows.collected(self.scan.match(self._progress, self._read_rows, rejected))

    def _read_pages(self) -> Generator[list[SourceRow], None, None]:
        if self._snapshot is not None:
            return self._source.read_pages(self._snapshot)
        return self._source.pages(self._engine)

    def _read_rows(self, row_keys: Sequence[str]) -> list[SourceRow]:
        with self._engine.connect() as connection:
            return list(self._source.read_rows(connection, row_keys))


def _done(page: _SubmittedPage) -> Page:
    return Page(page.rows.result(), page.stored)
