"""Row keys in SQLite, where a column may hold values of any type."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Integer, Text, case, cast, func, select

from db_dedup.dialects.keys import between_commas, concatenate, sql_text
from db_dedup.records import Family, SourceColumn


def key_text(value: ColumnElement[Any]) -> ColumnElement[str]:
    """A value as text, a blob in lower-case hexadecimal digits."""
    is_blob = func.typeof(value) == sql_text("blob")
    return case((is_blob, func.lower(func.hex(value))), else_=cast(value, Text))


def key_equals(
    column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
) -> ColumnElement[bool]:
    """Compare with the user's column on the left: its affinity and its collation decide."""
    if column.family is Family.BINARY:
        # Older versions cannot turn hexadecimal digits into a blob; our own index on row keys serves instead.
        return key_text(value) == text
    if not column.type_name:
        # Without a declared type nothing converts our text.
        number = cast(text, Integer)
        text = case((cast(number, Text) == text, number), else_=text)
    # Not ==, which may swap its sides.
    return value.bool_op("=")(text)


def json_array(texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """A JSON array of strings; json_quote alone would write NULL as a word."""
    quoted = [func.nullif(func.json_quote(text), sql_text("null")) for text in texts]
    return concatenate(between_commas(quoted))


def json_item(array: ColumnElement[str], index: int) -> ColumnElement[str]:
    """One string of a JSON array."""
    return func.json_extract(array, sql_text(f"$[{index}]"))


def key_list(row_keys: Sequence[str]) -> FromClause:
    """Row keys as a table, from one parameter."""
    items = func.json_each(json.dumps(row_keys, ensure_ascii=False)).table_valued("value", name="dedup_item")
    return select(cast(items.c.value, Text).label("row_key")).subquery("dedup_key")
