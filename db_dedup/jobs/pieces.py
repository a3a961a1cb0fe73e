"""How long a write of ours may keep others out, and long writes cut into pieces of that length."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self, TypeVar

from sqlalchemy import Connection, Engine

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.jobs.lease import Lease
from db_dedup.progress import Progress
from db_dedup.store.reader import Reader

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Pace:
    """What a transaction of ours aims at.

    Attributes:
        seconds: how long it lasts. A check that blocks waits as long; in SQLite, everybody who writes.
        gap_seconds: how long the database is left to others before the next one.
        rows: how many are written between two looks at the clock.
    """

    seconds: float
    gap_seconds: float
    rows: int


# In PostgreSQL, one UPDATE of many rows by key may read the whole table: 50,000 rows make that worth it.
_MANY_WRITERS: Final = Pace(seconds=1.0, gap_seconds=0.0, rows=50_000)
# Whoever waits for SQLite's lock looks for it every tenth of a second: a shorter gap may never be seen.
_ONE_WRITER: Final = Pace(seconds=0.25, gap_seconds=0.11, rows=1_000)
_ROWS_A_PAGE: Final = 20_000


def pace_of(dialect: Dialect) -> Pace:
    """What transactions in such a database aim at."""
    return _ONE_WRITER if dialect.capabilities.one_writer else _MANY_WRITERS


class Writing(ABC):
    """Where an answer is written: in one transaction, or in several."""

    def __init__(self, rows: int, progress: Progress) -> None:
        """Take how many rows to write at a time, and whom to tell of them."""
        self._rows, self._progress = rows, progress

    @property
    @abstractmethod
    def reader(self) -> Reader:
        """Reads what has been written so far."""

    @abstractmethod
    def connection(self) -> Connection:
        """The transaction for the next few rows; ask again for those after them."""

    def pause(self) -> None:
        """Something else than writing comes next."""
        return

    def parts(
        self, items: Iterable[_Item], at_most: int | None = None
    ) -> Iterator[tuple[Connection, list[_Item]]]:
        """Items to write, some at a time, `at_most` so many, with the transaction to write them in."""
        for part in batches(items, min(self._rows, at_most or self._rows)):
            yield self.connection(), part
            self._progress.advance(len(part))

    def slices(self, count: int) -> Iterator[tuple[Connection, slice]]:
        """As `parts`, of arrays of `count` elements."""
        for first in range(0, count, self._rows):
            last = min(first + self._rows, count)
            yield self.connection(), slice(first, last)
            self._progress.advance(last - first)


class OneTransaction(Writing):
    """Everything in the transaction of the caller."""

    def __init__(self, connection: Connection, dialect: Dialect, progress: Progress) -> None:
        super().__init__(pace_of(dialect).rows, progress)
        self._connection = connection

    @property
    def reader(self) -> Reader:
        """Reads in the same transaction."""
        return Reader.of(self._connection)

    def connection(self) -> Connection:
        """Always the same."""
        return self._connection


class Pieces(Writing):
    """One short transaction after another under the lease of a scan. Leaving the block commits the last one,
    or rolls it back where it ends by an exception; those before stay committed.

    What is written must therefore be invisible until it is complete, or be of no use to anybody.
    """

    def __init__(self, engine: Engine, dialect: Dialect, lease: Lease, progress: Progress) -> None:
        pace = pace_of(dialect)
        if not dialect.is_shared(engine):
            pace = replace(pace, gap_seconds=0.0)
        super().__init__(pace.rows, progress)
        self._engine, self._dialect, self._lease, self._pace = engine, dialect, lease, pace
        self._open: ExitStack | None = None
        self._connection: Connection | None = None
        self._began = 0.0
        self._ended = -pace.gap_seconds

    @property
    def rows(self) -> int:
        """How many rows to write between two calls of `connection`."""
        return self._rows

    @property
    def reader(self) -> Reader:
        """Reads what is committed; in short pages where a reader keeps writers out."""
        self.pause()
        page_rows = _ROWS_A_PAGE if self._dialect.capabilities.one_writer else None
        return Reader(self._engine.connect, page_rows)

    def connection(self) -> Connection:
        """The open transaction, or a new one where that has lasted long enough."""
        if time.monotonic() - self._began >= self._pace.seconds:
            self.pause()
        return self._connection or self._begin()

    def pause(self) -> None:
        """Commit what has been written, so that nobody waits for what is no write."""
        if self._open is not None:
            self._end(None, None, None)

    def _begin(self) -> Connection:
        time.sleep(max(0.0, self._ended + self._pace.gap_seconds - time.monotonic()))
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
        self._ended = time.monotonic()

    def __enter__(self) -> Self:
        """Nothing is open yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit or roll back the last transaction."""
        if self._open is not None:
            self._end(kind, error, trace)
