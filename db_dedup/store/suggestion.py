"""What `init` proposes for a table: which columns count, as what, and which tells the order of receipt."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final, Literal

from sqlalchemy import Connection, column, func, select, table

from db_dedup.errors import ConfigError
from db_dedup.records import Family, SourceColumn, SourceTable
from db_dedup.store.inspection import resolve_key

_SAMPLE_ROWS: Final = 500
_TEXT_FROM_CHARACTERS: Final = 12
_RECEIVED: Final = ("creat", "receiv", "submit", "insert", "regist", "time", "date", "时间", "日期", "登记")


@dataclass(frozen=True)
class Suggestion:
    """A table's settings as proposed."""

    table: str
    key: tuple[str, ...]
    order: str | None
    columns: dict[str, Literal["text", "value"]]


def suggest(connection: Connection, source: SourceTable) -> Suggestion | None:
    """Look at a sample of rows; None where the table has no text to compare, or no key."""
    try:
        key = tuple(column.name for column in resolve_key(source, None))
    except ConfigError:
        return None
    candidates = [c for c in source.columns if c.name not in key and c.family in (Family.TEXT, Family.NUMBER)]
    order = _order_column(source, key)
    lengths = _mean_lengths(connection, source, [c for c in candidates if c.family is Family.TEXT])
    columns: dict[str, Literal["text", "value"]] = {}
    for c in candidates:
        if c.name != order:
            is_text = c.family is Family.TEXT and lengths[c.name] >= _TEXT_FROM_CHARACTERS
            columns[c.name] = "text" if is_text else "value"
    if "text" not in columns.values():
        return None
    return Suggestion(source.name, key, order, columns)


def _order_column(source: SourceTable, key: Sequence[str]) -> str | None:
    """The column that says when a row was received: a date or time, best one whose name says so."""
    dates = [c for c in source.columns if c.family is Family.DATE and c.name not in key]
    named = [c for c in source.columns if c.name not in key and _sounds_like_receipt(c)]
    for preferred in ([c for c in dates if c in named], dates, [c for c in named if c.family is Family.TEXT]):
        if preferred:
            return min(preferred, key=lambda c: _rank(c.name)).name
    return None


def _sounds_like_receipt(c: SourceColumn) -> bool:
    return _rank(c.name) < len(_RECEIVED)


def _rank(name: str) -> int:
    """The place of the first word of receipt in the name; creation comes before any other time."""
    lowered = name.casefold()
    return next((i for i, word in enumerate(_RECEIVED) if word in lowered), len(_RECEIVED))


def _mean_lengths(
    connection: Connection, source: SourceTable, columns: Sequence[SourceColumn]
) -> dict[str, float]:
    """Mean length in characters of each column's filled cells, in a sample of rows."""
    if not columns:
        return {}
    own = table(source.name, *(column(c.name) for c in columns), schema=source.schema)
    query = select(*(func.length(own.c[c.name]) for c in columns)).limit(_SAMPLE_ROWS)
    rows = connection.execute(query).all()
    lengths = {}
    for i, c in enumerate(columns):
        filled = [float(row[i]) for row in rows if row[i]]
        # An empty table tells by its types: what has no short limit is text.
        lengths[c.name] = mean(filled) if filled else float(c.max_length or 1000) / 4
    return lengths
