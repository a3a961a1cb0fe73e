"""The texts of rows that are known by their keys, and the rows that are most similar to them."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from db_dedup.app.arguments import iterable_of, records_of
from db_dedup.app.database import Database
from db_dedup.records import NearestRow, Record, RowKey
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.given_keys import read_given
from db_dedup.store.row_answers import find_nearest
from db_dedup.store.source import Source
from db_dedup.translation import Phrase

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
        """Yield batches of items that each name a row or two; the texts of a batch fit into memory."""
        return self._source.batches(items, most)

    def read(self, row_keys: Iterable[RowKey]) -> dict[str, tuple[str, ...]]:
        """Return row key -> the present texts of its columns, "" for NULL, without rows that are gone.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        keys = self._keys(row_keys)
        with self._database.translate_driver_errors():
            rows = read_given(self._database.source_engine.connect, self._source, keys)
        return {row.row_key: row.values for row in rows}

    def of_record(self, record: Record) -> tuple[str, ...]:
        """Return the texts that the columns of a record would have as a row, "" for NULL.

        Raises:
            InvalidArgumentError: the record is no mapping of column names.
            UnknownNameError: the table does not have a column of the record.
        """
        records = records_of([record])
        with self._database.translate_driver_errors(), self._database.source_engine.connect() as connection:
            (row,) = self._source.rows_from(connection, records)
        return row.values

    def nearest(self, row_keys: Iterable[RowKey]) -> dict[str, NearestRow]:
        """Return row key -> the most similar row by the stored pairs, without rows that are in no pair.

        Raises:
            InvalidArgumentError: the table can have no such key.
        """
        keys = self._keys(row_keys)
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            return find_nearest(connection, self._store, keys)

    def _keys(self, given: Iterable[RowKey]) -> list[str]:
        return [self._source.row_key_of(key) for key in iterable_of(given, "row_keys", Phrase("row keys"))]
