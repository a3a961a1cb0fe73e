"""Long writes in transactions so short that others can write between them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection, Engine

from db_dedup.dialects.base import Dialect
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.scan.lease import Lease
from db_dedup.progress import Progress
from db_dedup.records.pages import take_lists
from db_dedup.store.reader import Reader

_Item = TypeVar("_Item")


class Writing(ABC):
    """The transactions in which an answer is written: one, or several."""

    def __init__(self, rows: int, progress: Progress) -> None:
        """Take how many rows to write at a time, and where to report them."""
        self._rows, self._progress = rows, progress

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """Reads what has been written so far."""

    @abstractmethod
    def connection(self) -> Connection:
        """The transaction for the next few rows; ask again for those after them."""

    def pause(self) -> None:
        """Note that the next step does not write."""
        return

    def advance(self, count: int) -> None:
        """Report rows that were written without `parts` or `slices`."""
        self._progress.advance(count)

    def parts(
        self, items: Iterable[_Item], at_most: int | None = None
    ) -> Iterator[tuple[Connection, list[_Item]]]:
        """Yield items to write, some at a time (`at_most` so many), with the transaction to write them in."""
        most = min(self._rows, at_most or self._rows)
        for part in take_lists(items, lambda: most):
            yield self.connection(), part
            self._progress.advance(len(part))

    def slices(self, count: int) -> Iterator[tuple[Connection, slice]]:
        """Do what `parts` does, for arrays of `count` elements."""
        for first in range(0, count, self._rows):
            last = min(first + self._rows, count)
            yield self.connection(), slice(first, last)
            self._progress.advance(last - first)


class OneTransaction(Writing):
    """Writes everything in the transaction of the caller."""

    def __init__(self, connection: Connection, dialect: Dialect, progress: Progress) -> None:
        super().__init__(pace_of(dialect).rows, progress)
        self._connection = connection

    @property
    def reader(self) -> Reader:
        """Reads in the same transaction."""
        return Reader.of(self._connection)

    def connection(self) -> Connection:
        """Return the caller's transaction."""
        return self._connection


class ShortTransactions(Writing):
    """Writes in one short transaction after another, under the lease of a scan.

    The end of the block commits the last transaction; an exception rolls it back, and no other.
    So what is written must be invisible until it is complete, or be of no use to anybody.
    """

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        lease: Lease,
        progress: Progress,
        *,
        is_unhurried: bool = False,
    ) -> None:
        """Prepare; no transaction is open yet.

        Args:
            engine: of our tables.
            dialect: of the same.
            lease: each transaction fails once it is lost.
            progress: where the written rows are reported.
            is_unhurried: the writing may take longer, so that each transaction is shorter.
        """
        pace = pace_of(dialect, is_unhurried=is_unhurried)
        if not dialect.is_shared(engine):
            pace = replace(pace, gap_seconds=0.0)
        super().__init__(pace.rows, progress)
        self._engine, self._dialect, self._lease, self._pace = engine, dialect, lease, pace
        self._open: ExitStack | None = None
        self._connection: Connection | None = None
        self._began = self._free_at = 0.0

    @property
    def rows(self) -> int:
        """How many rows to write between two calls of `connection`."""
        return self._rows

    @property
    def reader(self) -> Reader:
        """Reads what is committed; in short pages where a reader keeps writers out."""
        self.pause()
        return Reader.for_dialect(self._dialect, self._engine.connect)

    @property
    def would_wait(self) -> bool:
        """Whether the next transaction would have to wait for the end of the gap after the last one."""
        return self._open is None and time.monotonic() < self._free_at

    def connection(self) -> Connection:
        """Return the open transaction, or a new one if that has lasted long enough."""
        if time.monotonic() - self._began >= self._pace.seconds:
            self.pause()
        return self._connection or self._begin()

    def pause(self) -> None:
        """Commit what has been written, so that nobody waits while other work is done."""
        if self._open is not None:
            self._end(None, None, None)

    def _begin(self) -> Connection:
        time.sleep(max(0.0, self._free_at - time.monotonic()))
        with ExitStack() as stack:
            connection = stack.enter_context(self._dialect.write_transaction(self._engine))
            self._lease.fence(connection)
            self._open, self._connection = stack.pop_all(), connection
        self._began = time.monotonic()
        return connection

    def _end(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._open, self._connection = self._open, None, None
        if stack is not None:
            stack.__exit__(kind, error, trace)
        now = time.monotonic()
        self._free_at = now + self._pace.gap_after(now - self._began)

    def __enter__(self) -> Self:
        """Return the object; no transaction is open yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit or roll back the last transaction."""
        if self._open is not None:
            self._end(kind, error, trace)
