"""The texts of rows that an answer names only by their keys."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from db_dedup.app.database import Database
from db_dedup.store.source import Source

_Item = TypeVar("_Item")


class RowTexts:
    """Reads the watched columns of rows, some rows at a time.

    Attributes:
        columns: the names of the watched columns.
    """

    def __init__(self, database: Database, source: Source) -> None:
        self.columns = source.value_names
        self._database = database
        self._source = source

    def batches(self, items: Iterable[_Item], most: int) -> Iterator[list[_Item]]:
        """Items that each stand for a row or two, as many at a time as their texts may be in memory."""
        return self._source.batches(items, most)

    def read(self, row_keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Row key -> texts of its columns as they are now, "" for NULL; a row that is gone is missing."""
        database = self._database
        with database.errors_told(), database.source_engine.connect() as connection:
            return {row.row_key: row.values for row in self._source.read_rows(connection, row_keys)}
