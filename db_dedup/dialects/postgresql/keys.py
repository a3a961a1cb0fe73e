"""Row keys in PostgreSQL, independent of the session's time zone and date style."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Text,
    case,
    cast,
    collate,
    column,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import BYTEA, JSON, TIMESTAMP
from sqlalchemy.types import UserDefinedType

from db_dedup.dialects.base import NATIVE_FAMILIES
from db_dedup.dialects.keys import between_commas, concatenate, sql_text
from db_dedup.dialects.postgresql.arrays import array_parameter
from db_dedup.records import Family, SourceColumn

_COLLATABLE = re.compile(r"(VARCHAR|CHAR|TEXT|CITEXT|NAME|BPCHAR)\b", re.IGNORECASE)


class _NamedType(UserDefinedType[Any]):
    """A type by the name that inspection gave it."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


def key_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    """A value as text that compares by its characters."""
    return collate(_text(column, value), "C")


def key_equals(
    column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
) -> ColumnElement[bool]:
    """Cast our text to the type of the user's column."""
    if column.family is Family.BINARY:
        return value == func.decode(text, sql_text("hex"))
    if column.family is Family.BOOLEAN:
        return value == cast(cast(text, Integer), _NamedType("boolean"))
    if _is_zoned(column):
        return value == func.timezone(sql_text("UTC"), cast(text, TIMESTAMP))
    if not column.type_name:
        return cast(value, Text) == text
    typed = cast(text, _NamedType(column.type_name))
    if _COLLATABLE.match(column.type_name):
        return value == collate(typed, column.collation or "default")
    return value == typed


def json_array(texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """A JSON array of strings."""
    quoted = [cast(func.to_json(cast(text, Text)), Text) for text in texts]
    return collate(concatenate(between_commas(quoted)), "C")


def json_item(array: ColumnElement[str], index: int) -> ColumnElement[str]:
    """One string of a JSON array."""
    return func.json_array_element_text(cast(array, JSON), index)


def key_list(row_keys: Sequence[str]) -> FromClause:
    """Row keys as a table, from one parameter."""
    keys = array_parameter("dedup_row_keys", Text(), list(row_keys))
    items = func.unnest(keys).table_valued(column("row_key", Text)).render_derived(name="dedup_item")
    return select(items.c.row_key).subquery("dedup_key")


def readable(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """As text where the driver knows no such value: an infinite date, a range, a type of an extension."""
    return value if column.family in NATIVE_FAMILIES else _text(column, value)


def _text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    if column.family is Family.BINARY:
        return func.encode(cast(value, BYTEA), sql_text("hex"))
    if column.family is Family.BOOLEAN:
        return cast(cast(value, Integer), Text)
    if column.family is Family.DATE:
        return _date_text(column, value)
    return cast(value, Text)


def _date_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    if column.type_name.upper() == "DATE":
        written = func.to_char(value, sql_text("YYYY-MM-DD"))
    else:
        plain = func.timezone(sql_text("UTC"), value) if _is_zoned(column) else value
        written = func.to_char(plain, sql_text("YYYY-MM-DD HH24:MI:SS.US"))
        for tail in ("0", "."):  # 20:00:00.500000 becomes 20:00:00.5
            written = func.rtrim(written, sql_text(tail))
    return case((func.isfinite(value), written), else_=cast(value, Text))


def _is_zoned(column: SourceColumn) -> bool:
    return column.family is Family.DATE and "WITH TIME ZONE" in column.type_name.upper()
