"""How long a transaction of ours may keep others out of the database."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from db_dedup.dialects.base import Dialect


@dataclass(frozen=True)
class Pace:
    """What a transaction of ours aims at.

    Attributes:
        seconds: how long it lasts. So long a blocking check may have to wait; in SQLite, every other writer.
        gap_seconds: pause before the next one, in which others can write.
        rows: how many are written between two looks at the clock.
    """

    seconds: float
    gap_seconds: float
    rows: int

    def gap_after(self, locked_seconds: float) -> float:
        """Return the shortest pause in which everybody can write who has waited for a transaction.

        Args:
            locked_seconds: how long the transaction has kept others out.
        """
        if not self.gap_seconds:
            return 0.0
        waited = zip(accumulate(_SLEEPS, initial=0.0), _SLEEPS, strict=False)
        longest = max(sleep for before, sleep in waited if before <= locked_seconds)
        return min(self.gap_seconds, longest + _MARGIN_SECONDS)


# In PostgreSQL, one UPDATE of many rows by key may read the whole table: 20,000 rows make that worth it, and
# MariaDB writes so many in less than a second.
_MANY_WRITERS: Final = Pace(seconds=1.0, gap_seconds=0.0, rows=20_000)
# A connection that waits for SQLite's lock asks for it every tenth of a second: it may miss a shorter gap.
_ONE_WRITER: Final = Pace(seconds=0.25, gap_seconds=0.11, rows=1_000)
# A fold of the index has no deadline, so its transactions are short for the sake of other writers.
_ONE_WRITER_UNHURRIED: Final = Pace(seconds=0.05, gap_seconds=0.11, rows=1_000)
# Only at first it asks more often: SQLite's own handler of a busy database sleeps so many seconds between two
# tries, and then a tenth each time (sqliteDefaultBusyCallback in its main.c).
_SLEEPS: Final = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.025, 0.025, 0.025, 0.05, 0.05, 0.1)
_MARGIN_SECONDS: Final = 0.01


def pace_of(dialect: Dialect, *, is_unhurried: bool = False) -> Pace:
    """Return what transactions in a database of this dialect aim at.

    Args:
        dialect: of the database.
        is_unhurried: the whole work may take longer, so that each transaction is shorter.
    """
    if not dialect.capabilities.one_writer:
        return _MANY_WRITERS
    return _ONE_WRITER_UNHURRIED if is_unhurried else _ONE_WRITER
