"""The texts of rows that an answer names only by their keys."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from db_dedup.app.arguments import iterable_of
from db_dedup.app.database import Database
from db_dedup.records import RowKey
from db_dedup.store.given_keys import read_given
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

    def read(self, row_keys: Iterable[RowKey]) -> dict[str, tuple[str, ...]]:
        """Row key -> texts of its columns as they are now, "" for NULL; a row that is gone is missing.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        given = iterable_of(row_keys, "row_keys", "row keys")
        keys = [self._source.row_key_of(key) for key in given]
        with self._database.errors_told():
            rows = read_given(self._database.source_engine.connect, self._source, keys)
        return {row.row_key: row.values for row in rows}
