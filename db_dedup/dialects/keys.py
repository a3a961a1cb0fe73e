"""What the row keys of all databases have in common."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Text, literal_column

from db_dedup.errors import ConfigError
from db_dedup.records import SourceColumn

_INEXACT = ("FLOAT", "REAL", "DOUBLE")


def refuse_unusable_key(column: SourceColumn, unusable: Sequence[str]) -> None:
    """Raise ConfigError for a column that cannot identify a row by its text."""
    if any(word in column.type_name.upper() for word in (*_INEXACT, *unusable)):
        raise ConfigError(
            f"column {column.name!r} ({column.type_name}) cannot be a key: its values have no exact text"
        )


def sql_text(text: str) -> ColumnElement[str]:
    """A text constant, written out: views and triggers take no parameters."""
    return literal_column("'" + text.replace("'", "''") + "'", Text)


def concatenate(parts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """The parts one after the other; NULL if one of them is."""
    result = parts[0]
    for part in parts[1:]:
        result = result.concat(part)
    return result


def between_commas(parts: Sequence[ColumnElement[str]]) -> list[ColumnElement[str]]:
    """The pieces of a JSON array, brackets included."""
    pieces = [sql_text("[")]
    for i, part in enumerate(parts):
        pieces += [sql_text(","), part] if i else [part]
    return [*pieces, sql_text("]")]
