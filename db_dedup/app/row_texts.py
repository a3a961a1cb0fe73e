"""The texts of rows that an answer names only by their keys, and which of them resemble each other."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from db_dedup.app.arguments import iterable_of
from db_dedup.app.database import Database
from db_dedup.records import NearestRow, RowKey
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import read_given
from db_dedup.store.source import Source
from db_dedup.store.standing import find_nearest

_Item = TypeVar("_Item")


class RowTexts:
    """Reads the watched columns of rows, some rows at a time.

    Attributes:
        columns: the names of the watched columns.
    """

    def __init__(self, database: Database, source: Source, store: FingerprintStore) -> None:
        self.columns = source.value_names
        self._database = database
        self._source = source
        self._store = store

    def batches(self, items: Iterable[_Item], most: int) -> Iterator[list[_Item]]:
        """Items that each name a row or two, as many at a time as their texts may be in memory."""
        return self._source.batches(items, most)

    def read(self, row_keys: Iterable[RowKey]) -> dict[str, tuple[str, ...]]:
        """Row key -> texts of its columns as they are now, "" for NULL; a row that is gone is missing.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        keys = self._keys(row_keys)
        with self._database.errors_told():
            rows = read_given(self._database.source_engine.connect, self._source, keys)
        return {row.row_key: row.values for row in rows}

    def nearest(self, row_keys: Iterable[RowKey]) -> dict[str, NearestRow]:
        """Row key -> the row that it resembles most by the stored pairs; a row without a pair is missing.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        keys = self._keys(row_keys)
        with self._database.errors_told(), self._database.engine.connect() as connection:
            return find_nearest(connection, self._store, keys)

    def _keys(self, given: Iterable[RowKey]) -> list[str]:
        return [self._source.row_key_of(key) for key in iterable_of(given, "row_keys", "row keys")]
