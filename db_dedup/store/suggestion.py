"""What `init` proposes for a table: a sample of it is read here, and judged in `proposal`."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, column, func, select, table

from db_dedup.dialects.base import Dialect
from db_dedup.errors import ConfigError
from db_dedup.flow.rows.values import canonical_text
from db_dedup.proposal import (
    SAMPLE_CHARACTERS,
    ColumnProfile,
    TableProposal,
    choose_by_type,
    choose_columns,
    choose_order,
    has_too_little_text,
    profile_column,
    risk_of_too_little_text,
    risks_of_texts,
)
from db_dedup.records import Family, SourceColumn, SourceTable
from db_dedup.store.inspection import resolve_key

_SAMPLE_ROWS: Final = 1_000
_LONG_FAMILIES: Final = (Family.TEXT, Family.BINARY, Family.OTHER)


def propose(connection: Connection, dialect: Dialect, source: SourceTable) -> TableProposal:
    """Look at the table's first rows and propose its settings.

    Raises:
        ConfigError: Nothing identifies a row, or a column whose values have no exact text does; or no column
            holds anything to compare.
    """
    identifying = resolve_key(source, None)
    dialect.row_key(identifying, table(source.name, *(column(c.name) for c in identifying)))  # may refuse one
    key = tuple(c.name for c in identifying)
    sample = _sample(connection, dialect, source, [c for c in source.columns if key != (c.name,)])
    profiles = _profiles(source, sample)
    order = choose_order(source, key, {name: profile.form for name, profile in profiles.items()})
    columns = [c for c in source.columns if c.name not in key and c.name != order]
    choices = choose_columns([profiles[c.name] for c in columns]) if profiles else choose_by_type(columns)
    chosen = {choice.name for choice in choices if choice.is_chosen}
    if not chosen:
        raise ConfigError(
            "table {table!r} has no column of texts to compare: write the settings by hand to compare others",
            table=source.name,
        )
    compared = {name: texts for name, texts in sample.items() if name in chosen}
    return TableProposal(source.name, key, order, choices, tuple(_risks(compared)))


def _sample(
    connection: Connection, dialect: Dialect, source: SourceTable, columns: Sequence[SourceColumn]
) -> dict[str, list[str]]:
    """Return the texts of the first rows, column by column."""
    own = table(source.name, *(column(c.name) for c in source.columns), schema=source.schema)
    shown = [_beginning(c, dialect.readable(c, own.c[c.name])) for c in columns]
    query = select(*(value.label(f"dedup_{i}") for i, value in enumerate(shown))).select_from(own)
    rows = connection.execute(query.limit(_SAMPLE_ROWS)).all() if shown else []
    return {c.name: [canonical_text(row[i], c.family) for row in rows] for i, c in enumerate(columns)}


def _profiles(source: SourceTable, sample: dict[str, list[str]]) -> dict[str, ColumnProfile]:
    """Return name -> description of each sampled column; nothing if the table has no rows."""
    if not any(sample.values()):
        return {}
    return {name: profile_column(name, source.column(name).family, texts) for name, texts in sample.items()}


def _risks(compared: dict[str, list[str]]) -> Iterator[str]:
    """Yield what a table will suffer from; the proposed preset leaves frames out."""
    yield from risks_of_texts(compared, leaves_frames_out=True)
    rows = list(zip(*compared.values(), strict=True))
    yield from risk_of_too_little_text(sum(map(has_too_little_text, rows)), len(rows), is_sample=True)


def _beginning(c: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the beginning of a value that may be long, in characters or bytes.

    A value of a type whose name we do not know stays whole: the database may have no substr for it, as for a
    vector.
    """
    may_be_cut = c.family in _LONG_FAMILIES and (c.family is not Family.OTHER or c.type_name)
    return func.substr(value, 1, SAMPLE_CHARACTERS) if may_be_cut else value
