"""How many rows to ask a database for at once.

A table may hold a few characters a row, or megabytes. So the number of rows that a query or a fetch asks for
follows the length of the rows that came before.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from db_dedup.records import SourceRow
from db_dedup.records.pages import PAGE_CHARACTERS, take_lists

_Item = TypeVar("_Item")

_FIRST_ROWS: Final = 64
_UNSEEN_ROWS: Final = 256
_MOST_ROWS: Final = 1_000
_GROWTH: Final = 4


def length_of(row: SourceRow) -> int:
    """How many characters are in a row's columns."""
    return sum(map(len, row.values))


class ReadSize:
    """How many rows to ask a database for at once, so that they are no more than a page.

    Attributes:
        rows: the number. It starts small and grows step by step, because a long row may follow short ones.
    """

    def __init__(self) -> None:
        self.rows = _FIRST_ROWS
        self._characters_a_row: float | None = None

    def note(self, rows: int, characters: int) -> None:
        """Learn from so many rows that have come, which have so many characters together."""
        if rows:
            self._characters_a_row = characters / rows
            fitting = PAGE_CHARACTERS * rows // max(1, characters)
            self.rows = max(1, min(fitting, _GROWTH * self.rows, _MOST_ROWS))

    def rows_within(self, characters: int) -> int:
        """How many rows like the last ones have so many characters together; few before any has come."""
        if self._characters_a_row is None:
            return _UNSEEN_ROWS
        return max(1, int(characters / max(1.0, self._characters_a_row)))

    def batches(self, items: Iterable[_Item], most: int = _MOST_ROWS) -> Iterator[list[_Item]]:
        """Yield items, each of which is a row of the database, as many at a time as `rows` says by then.

        Args:
            items: the items.
            most: how many at most, whatever `rows` says.
        """
        return take_lists(items, lambda: min(most, self.rows))
