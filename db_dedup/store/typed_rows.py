"""The user's rows with the values of any of their columns as Python has them, to be written to files."""

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final, cast

from sqlalchemy import Row

from db_dedup.config import Text, WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.flow.rows.keys import storable_keys
from db_dedup.flow.rows.values import canonical_text, moment_of
from db_dedup.records import Family, SourceRow, SourceTable
from db_dedup.store.source import Source

TypedValue = str | int | float | Decimal | bool | date | None
"""What a value is in a file; a moment is a `datetime`, which is a `date`."""


class TypedSource(Source):
    """Reads rows as `Source` does, but the values of its rows are typed, and NULL is None."""

    def __init__(
        self, dialect: Dialect, source: SourceTable, watched: WatchedTable, columns: Sequence[str]
    ) -> None:
        """Choose the columns.

        Raises:
            UnknownNameError: one does not exist.
        """
        chosen = {name: Text() for name in columns}
        changed = {"columns": chosen, "within": (), "order": None}
        super().__init__(dialect, source, watched.model_copy(update=changed))
        self._readers = [_READERS.get(c.family, _text_reader(c.family)) for c in self.value_columns]

    def _source_rows(self, rows: Sequence[Sequence[Any]]) -> list[SourceRow]:
        found = [cast("Row[Any]", row) for row in rows if row[0] is not None]
        self.rows_without_key += len(rows) - len(found)
        keys = storable_keys([row[0] for row in found])
        last = 2 + len(self._readers)
        return [
            SourceRow(key, None, tuple(map(_read, self._readers, row[2:last])), None)
            for key, row in zip(keys, found, strict=True)
        ]


_Reader = Callable[[Any], TypedValue]


def _read(reader: _Reader, value: Any) -> Any:
    return None if value is None else reader(value)


def _text_reader(family: Family) -> _Reader:
    return lambda value: canonical_text(value, family)


def _moment(value: Any) -> TypedValue:
    moment = moment_of(value)
    return canonical_text(value, Family.DATE) if moment is None else moment


def _number(value: Any) -> TypedValue:
    is_number = isinstance(value, int | float | Decimal)
    return value if is_number else canonical_text(value, Family.NUMBER)


def _boolean(value: Any) -> TypedValue:
    return bool(value) if isinstance(value, int) else canonical_text(value, Family.BOOLEAN)


_READERS: Final[dict[Family, _Reader]] = {
    Family.DATE: _moment,
    Family.NUMBER: _number,
    Family.BOOLEAN: _boolean,
}
