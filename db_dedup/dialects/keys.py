"""Parts of row keys that several databases share."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Dialect, Text, TypeDecorator, literal_column

from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.flow.rows.keys import may_be_key
from db_dedup.flow.rows.values import date_as_stored
from db_dedup.plurals import counted
from db_dedup.records import Family, RowKey, SourceColumn
from db_dedup.translation import Phrase

KeyValueText = Callable[[SourceColumn, object], str | None]
"""The text of one key column for a value of Python; None where the column takes none of its type."""

KEY_LIST: Final = "dedup_row_keys"
"""The parameter of `Dialect.key_list`. It takes a list of row keys."""

_INEXACT = ("FLOAT", "REAL", "DOUBLE")
_SCALED: Final = re.compile(r"(?:DECIMAL|NUMERIC)\((\d+)(?:, *(\d+))?\)", re.IGNORECASE)
_UUID_DIGITS: Final = 32
_LITERAL: Final = re.compile("'(?:[^']|'')*'")
"""A member of an ENUM, which may have the name of a type."""


class JsonList(TypeDecorator[Sequence[str] | Sequence[int]]):
    """A list of texts or of whole numbers in Python, a JSON array in the database; for parameters."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[str] | Sequence[int] | None, dialect: Dialect) -> str:  # noqa: ARG002
        """Write the array."""
        return json.dumps(list(value or ()), ensure_ascii=False)


def refuse_unusable_key(column: SourceColumn, unusable: Sequence[str]) -> None:
    """Raise ConfigError for a column that cannot identify a row by its text."""
    names, plain = "|".join((*_INEXACT, *unusable)), _LITERAL.sub("", column.type_name)
    if re.search(rf"\b(?:{names})\b", plain, re.IGNORECASE):
        raise ConfigError(
            "column {column!r} ({column_type}) cannot be a key: its values have no exact text",
            column=column.name,
            column_type=column.type_name,
        )


def sql_text(text: str) -> ColumnElement[str]:
    """Return a text constant written into the SQL: views and triggers take no parameters."""
    return literal_column("'" + text.replace("'", "''") + "'", Text)


def concatenate(parts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """Return the parts joined; NULL if one of them is."""
    result = parts[0]
    for part in parts[1:]:
        result = result.concat(part)
    return result


def between_commas(parts: Sequence[ColumnElement[str]]) -> list[ColumnElement[str]]:
    """Return the pieces of a JSON array, brackets and commas included."""
    pieces = [sql_text("[")]
    for i, part in enumerate(parts):
        pieces += [sql_text(","), part] if i else [part]
    return [*pieces, sql_text("]")]


def given_key(columns: Sequence[SourceColumn], given: RowKey, text_of: KeyValueText) -> str:
    """Return the row key that a caller means.

    Args:
        columns: of the key.
        given: the row key as text; or the value of the one column; or a tuple with a value for each column.
        text_of: how this database writes a value.

    Raises:
        InvalidArgumentError: the number of values, or the type of one, is not that of the columns.
    """
    if isinstance(given, str):
        return str.__str__(given)
    values = tuple(given) if isinstance(given, tuple | list) else (given,)
    if len(values) != len(columns):
        raise InvalidArgumentError(
            "the key has {columns}, {names}, and {key} has {values}",
            columns=counted(len(columns), "column"),
            names=_names(columns),
            key=_shown(given),
            values=counted(len(values), "value"),
        )
    texts = [_required(column, value, text_of) for column, value in zip(columns, values, strict=True)]
    return texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def key_value_text(column: SourceColumn, value: object) -> str | None:
    """Return how PostgreSQL, MariaDB and MySQL write a Python value in a row key; None for a wrong type."""
    text: str | None = None
    match column.family, value:
        case _, str():
            text = str.__str__(value)
        case Family.BOOLEAN, bool():
            text = str(int(value))
        case _, bool():
            pass
        case Family.NUMBER, Integral() | Decimal():
            text = _number_text(column, value if isinstance(value, Decimal) else Decimal(int(value)))
        case Family.DATE, datetime() if not is_day(column):
            text = _moment_text(value)
        case Family.DATE, date() if not isinstance(value, datetime):
            text = value.isoformat() if is_day(column) else f"{value.isoformat()} 00:00:00"
        case Family.BINARY, bytes():
            text = value.hex()
        case _, UUID():
            text = uuid_text(column, value)
    return text


def uuid_text(column: SourceColumn, value: UUID) -> str | None:
    """Return a UUID as text: 32 digits in columns of that length and of bytes, as SQLAlchemy stores it
    there."""
    if column.family is Family.BINARY or column.max_length == _UUID_DIGITS:
        return value.hex
    return None if column.family in (Family.NUMBER, Family.DATE, Family.TIME, Family.BOOLEAN) else str(value)


def is_day(column: SourceColumn) -> bool:
    """Return whether the column holds dates without a time."""
    return column.type_name.upper() == "DATE"


def require_key(columns: Sequence[SourceColumn], row_key: str) -> None:
    """Check that a row key that is to be stored has the form of one.

    Raises:
        InvalidArgumentError: it is no text of as many values as there are columns.
    """
    if not may_be_key(row_key, len(columns)):
        raise InvalidArgumentError(
            "the key has {columns} columns, {names}: give a tuple of their values, "
            "or their texts as a JSON array, in place of {key}",
            columns=len(columns),
            names=_names(columns),
            key=_shown(row_key),
        )


def _names(columns: Sequence[SourceColumn]) -> str:
    return ", ".join(repr(column.name) for column in columns)


def dates_as_stored(
    connection: Connection,  # noqa: ARG001
    given: Sequence[tuple[SourceColumn, object]],
) -> list[object]:
    """Return each value as the database stores it: a moment cut to its date in a column of dates, and so
    on."""
    return [
        date_as_stored(value, is_day=is_day(column)) if column.family is Family.DATE else value
        for column, value in given
    ]


def _required(column: SourceColumn, value: object, text_of: KeyValueText) -> str:
    text = text_of(column, value)
    if text is None:
        raise InvalidArgumentError(
            "key column {column!r} ({column_type}) takes no {given_type}: "
            "give a value of its type, or its text",
            column=column.name,
            column_type=column.type_name or Phrase("no type"),
            given_type=type(value).__name__,
        )
    return text


def _number_text(column: SourceColumn, value: Decimal) -> str | None:
    """Return a number with as many decimal places as the column has."""
    if not value.is_finite():
        return None
    scaled = _SCALED.match(column.type_name)
    if scaled is None:
        return format(value, "f")
    text = format(value, f".{int(scaled[2] or 0)}f")
    return text if Decimal(text) == value else format(value, "f")


def _moment_text(value: datetime) -> str:
    """Return a moment in UTC, without zeros at the end of the fraction of its second."""
    moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    text = moment.isoformat(" ")
    return text.rstrip("0") if moment.microsecond else text


def _shown(given: object) -> str:
    return repr(given)[:80]
