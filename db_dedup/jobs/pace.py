"""How long a transaction of ours may keep others out of the database."""

from dataclasses import dataclass
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


# In PostgreSQL, one UPDATE of many rows by key may read the whole table: 20,000 rows make that worth it, and
# MariaDB writes so many in less than a second.
_MANY_WRITERS: Final = Pace(seconds=1.0, gap_seconds=0.0, rows=20_000)
# A connection that waits for SQLite's lock asks for it every tenth of a second: it may miss a shorter gap.
_ONE_WRITER: Final = Pace(seconds=0.25, gap_seconds=0.11, rows=1_000)


def pace_of(dialect: Dialect) -> Pace:
    """Return what transactions in a database of this dialect aim at."""
    return _ONE_WRITER if dialect.capabilities.one_writer else _MANY_WRITERS
