"""How many changes the worker takes in one batch."""

from typing import Final, Self

from db_dedup.dialects.base import Dialect
from db_dedup.jobs.pace import Pace, pace_of
from db_dedup.store.source import Source

BATCH_CHANGES: Final = 2_000
"""The most changes in one batch, unless a caller asks for another limit."""

_ONE_WRITER_FIRST_BATCH: Final = 20
# Every batch has costs that do not depend on its size. Below this size they are most of it, so a slow
# database would make batches ever smaller without making any of them quick.
_LEAST_BY_TIME: Final = 25
# While a batch holds SQLite's lock, every other writer waits, and tries again after 53, 78 and 103 ms.
_ONE_WRITER_LOCK_SECONDS: Final = 0.05
# The texts of a batch are in memory together, and their features take some ten times as much.
_CHARACTERS_A_BATCH: Final = 8_000_000


class BatchSize:
    """The size of the next batch, learned from those before.

    Attributes:
        limit: the most changes in any batch.
        changes: how many to take next.
        rate: changes a second, the latest batches counting most; None or 0 while it is not known.
    """

    def __init__(
        self, limit: int, wanted_seconds: float, first: int | None = None, pace: Pace | None = None
    ) -> None:
        """Prepare.

        Args:
            limit: the most changes in any batch.
            wanted_seconds: how long a batch should hold the lock of the table.
            first: the size of the first batch; None for the limit.
            pace: tells the pause between two batches, which counts for the rate; None: there is none.
        """
        self.limit = self._most = limit
        self.changes = limit if first is None else min(limit, first)
        self.rate: float | None = None
        self._asked = self.changes
        self._wanted_seconds, self._pace = wanted_seconds, pace

    @classmethod
    def for_dialect(cls, dialect: Dialect, limit: int) -> Self:
        """Return the size to begin with in a database of this dialect: small where a batch blocks all other
        writers."""
        pace = pace_of(dialect)
        if dialect.capabilities.one_writer:
            return cls(limit, _ONE_WRITER_LOCK_SECONDS, _ONE_WRITER_FIRST_BATCH, pace)
        return cls(limit, pace.seconds)

    def ask(self, count: int) -> int:
        """Return how many of so many changes to take now that have been matched ahead."""
        self._asked = self.changes
        return min(self.changes, count)

    def ahead(self, source: Source | None) -> int:
        """Return how many changes to match ahead of the next batches, which write them a part at a time.

        Args:
            source: the user's table; no more of its rows are matched than fit into memory together. None
                before the first batch, which takes one change.
        """
        most = 1 if source is None else source.rows_within(_CHARACTERS_A_BATCH)
        return min(self._most, most)

    def learn(self, changes: int, seconds: float, locked_seconds: float) -> None:
        """Learn from a batch that was handled, if it was full.

        The first batch is not used for the rate: it also loads what later batches find loaded.

        Args:
            changes: of the batch.
            seconds: how long it took.
            locked_seconds: how long of these it held the lock of the table.
        """
        if changes < self._asked:
            return
        seconds = max(seconds, 1e-6)
        locked = max(locked_seconds, 1e-6)
        factor = min(max(self._wanted_seconds / locked, 1 / 4), 4)
        # After a batch that was too much its limit is raised slowly: another one that fails costs time again.
        self._most = min(self.limit, self._most + self._most // 8 + 1)
        self.changes = max(1, min(self._most, max(_LEAST_BY_TIME, int(self.changes * factor))))
        rate = changes / (seconds + (self._pace.gap_after(locked) if self._pace else 0.0))
        if self.rate is None:
            self.rate = 0.0
        else:
            self.rate = rate if not self.rate else 0.7 * self.rate + 0.3 * rate

    def halve(self, changes: int) -> None:
        """Take half of the changes of a batch that was too much."""
        self._most = self.changes = max(1, changes // 2)
