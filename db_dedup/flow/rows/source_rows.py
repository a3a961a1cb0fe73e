"""Rows as a driver gives them, turned into rows of canonical texts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from db_dedup.flow.rows.keys import storable_key, storable_keys
from db_dedup.flow.rows.order import order_text
from db_dedup.flow.rows.values import canonical_text, canonical_texts
from db_dedup.flow.rows.within import WithinBy, within_part
from db_dedup.records import Family, SourceRow


class RawRow(NamedTuple):
    """One row as the database gave it.

    Attributes:
        row_key: None where a part of the key is NULL.
        order_value: of the order column; None where there is no such column.
        values: of the watched columns.
        within: of the columns that both rows of a pair must agree in.
    """

    row_key: str | None
    order_value: Any
    values: Sequence[Any]
    within: Sequence[Any]


class WithinColumn(NamedTuple):
    """A column that both rows of a pair must agree in, as a whole or by a part of its dates."""

    by: WithinBy
    family: Family


@dataclass(frozen=True)
class RowTexts:
    """Turns the values of one table's rows into texts, by the families of their columns.

    Attributes:
        values: of the watched columns, in their order.
        order: of the order column; OTHER where there is none.
        within: the columns that both rows of a pair must agree in.
    """

    values: tuple[Family, ...]
    order: Family
    within: tuple[WithinColumn, ...]

    def row(self, raw: RawRow) -> SourceRow:
        """Return the row as texts; without a key, as of a row that is not stored, its key is "".

        Raises:
            RowKeyError: its key cannot be stored.
        """
        return SourceRow(
            row_key="" if raw.row_key is None else storable_key(raw.row_key),
            order_value=order_text(raw.order_value, self.order),
            values=tuple(map(canonical_text, raw.values, self.values)),
            within=self._within_text(raw.within),
        )

    def rows(self, raw: Sequence[Sequence[Any]]) -> list[SourceRow]:
        """Return rows of a page as texts, column by column: a table has millions of them.

        Args:
            raw: row key, order value, watched columns and `within` columns of each row; what is behind them
                is left out.

        Raises:
            RowKeyError: a key cannot be stored.
        """
        if not raw:
            return []
        columns = list(zip(*raw, strict=True))
        first_within = 2 + len(self.values)
        values = [
            canonical_texts(own, f) for own, f in zip(columns[2:first_within], self.values, strict=True)
        ]
        within: Iterable[str | None] = repeat(None, len(raw))
        if self.within:
            within_columns = columns[first_within : first_within + len(self.within)]
            within = map(self._within_text, zip(*within_columns, strict=True))
        has_order = columns[1].count(None) < len(raw)
        orders = [order_text(value, self.order) for value in columns[1]] if has_order else columns[1]
        rows = zip(storable_keys(columns[0]), orders, zip(*values, strict=True), within, strict=True)
        return list(map(SourceRow._make, rows))

    def _within_text(self, values: Sequence[Any]) -> str | None:
        """Return the text that both rows of a pair must share; rows without a value have the same text."""
        if not self.within:
            return None
        pairs = zip(self.within, values, strict=True)
        parts = [within_part(column.by, value, column.family) for column, value in pairs]
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
