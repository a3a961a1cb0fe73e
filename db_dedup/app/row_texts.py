"""The texts of rows that an answer names only by their keys, and which of them resemble each other."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from db_dedup.app.database import Database
from db_dedup.records import NearestRow
from db_dedup.store.fingerprints import FingerprintStore
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
        """Items that each stand for a row or two, as many at a time as their texts may be in memory."""
        return self._source.batches(items, most)

    def read(self, row_keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Row key -> texts of its columns as they are now, "" for NULL; a row that is gone is missing."""
        database = self._database
        with database.errors_told(), database.source_engine.connect() as connection:
            return {row.row_key: row.values for row in self._source.read_rows(connection, row_keys)}

    def nearest(self, row_keys: Sequence[str]) -> dict[str, NearestRow]:
        """Row key -> the row that it resembles most by the stored pairs; a row without a pair is missing."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            return find_nearest(connection, self._store, row_keys)
