"""What `init` proposes for a table: its key, its order of receipt, and the columns to compare."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, column, func, select, table

from db_dedup.dialects.base import Dialect
from db_dedup.errors import ConfigError
from db_dedup.proposal import ColumnChoice, TableProposal, choose_by_type, choose_columns, profile_column
from db_dedup.records import Family, SourceColumn, SourceTable
from db_dedup.store.inspection import resolve_key
from db_dedup.store.values import canonical_text

_SAMPLE_ROWS: Final = 1_000
_SAMPLE_CHARACTERS: Final = 10_000
"""Of each text, so that a table of books is sampled as fast as any other."""
_LONG_TYPE: Final = 50
"""Characters: a shorter type holds names and codes."""
_RECEIVED: Final = ("creat", "receiv", "submit", "insert", "regist", "time", "date", "时间", "日期", "登记")


def propose(connection: Connection, dialect: Dialect, source: SourceTable) -> TableProposal:
    """Look at the table's first rows and propose its settings.

    Raises:
        ConfigError: Nothing identifies a row, or a column whose values have no exact text does; or no column
            holds anything to compare.
    """
    identifying = resolve_key(source, None)
    dialect.row_key(identifying, table(source.name, *(column(c.name) for c in identifying)))  # may refuse one
    key = tuple(c.name for c in identifying)
    order = _order_column(source, key)
    columns = [c for c in source.columns if c.name not in key and c.name != order]
    proposal = TableProposal(source.name, key, order, _choices(connection, dialect, source, columns))
    if not proposal.chosen:
        raise ConfigError(f"table {source.name!r} has no column of texts to compare")
    return proposal


def _choices(
    connection: Connection, dialect: Dialect, source: SourceTable, columns: Sequence[SourceColumn]
) -> tuple[ColumnChoice, ...]:
    own = table(source.name, *(column(c.name) for c in source.columns), schema=source.schema)
    shown = [_beginning(c, dialect.readable(c, own.c[c.name])) for c in columns]
    query = select(*(value.label(f"dedup_{i}") for i, value in enumerate(shown))).select_from(own)
    rows = connection.execute(query.limit(_SAMPLE_ROWS)).all() if shown else []
    if not rows:
        return choose_by_type((c.name, _holds_long_texts(c)) for c in columns)
    return choose_columns(
        [
            profile_column(c.name, c.family, [canonical_text(row[i], c.family) for row in rows])
            for i, c in enumerate(columns)
        ]
    )


def _holds_long_texts(c: SourceColumn) -> bool:
    return c.family is Family.TEXT and (c.max_length is None or c.max_length >= _LONG_TYPE)


def _beginning(c: SourceColumn, value: ColumnElement[str]) -> ColumnElement[str]:
    return func.substr(value, 1, _SAMPLE_CHARACTERS) if c.family is Family.TEXT else value


def _order_column(source: SourceTable, key: Sequence[str]) -> str | None:
    """The column that says when a row was received: a date or time, best one whose name says so."""
    dates = [c for c in source.columns if c.family is Family.DATE and key != (c.name,)]
    named = [c for c in source.columns if key != (c.name,) and _sounds_like_receipt(c)]
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
