"""Row keys in PostgreSQL, independent of the session's time zone, date style and search path.

The function of the triggers runs with our rights in the session of whoever writes. So what would be found by
its name alone is named with the schema pg_catalog: another schema may have something of the same name.
"""

import re
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Text,
    and_,
    cast,
    collate,
    column,
    func,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSON, TIMESTAMP
from sqlalchemy.types import UserDefinedType

from db_dedup.dialects.keys import KEY_LIST, between_commas, sql_text
from db_dedup.dialects.postgresql.arrays import array_parameter
from db_dedup.records import Family, SourceColumn

_COLLATABLE = re.compile(r"(VARCHAR|CHAR|TEXT|CITEXT|NAME|BPCHAR)\b", re.IGNORECASE)

_FLOAT = re.compile(r"DOUBLE|REAL|FLOAT", re.IGNORECASE)
_UNSCALED = re.compile(r"NUMERIC|DECIMAL", re.IGNORECASE)
_NATIVE_FAMILIES: Final = frozenset({Family.NUMBER, Family.BOOLEAN, Family.BINARY})
"""Families whose values the driver always fetches without an error."""
_PLAIN_COLLATIONS: Final = (None, "default", "C", "POSIX", "ucs_basic")
"""Collations under which different texts are never equal."""


class _NamedType(UserDefinedType[Any]):
    """A type by the name that inspection gave it."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


_CATALOG: Final = func.pg_catalog
_TEXT: Final = _NamedType("pg_catalog.text")


def key_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a value as text that compares by its characters."""
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
    wanted = typed(column, text)
    if _COLLATABLE.match(column.type_name):
        wanted = collate(wanted, column.collation or "default")
    elif column.family is Family.TEXT:
        value = typed(column, value)  # no operator compares a domain over an ENUM with the ENUM itself
    if _is_exact(column):
        return value == wanted
    # Byte by byte, since 1.0 and 1.00 are equal, too, and different texts under a collation or in CITEXT. The
    # value of a domain is cast to the type below it, since only rows of the same types can be compared.
    same_type = func.row(typed(column, value))
    return and_(value == wanted, _CATALOG.record_image_eq(same_type, func.row(wanted)))


def json_array(texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """Return a JSON array of strings."""
    quoted = [_as_text(_CATALOG.to_json(_as_text(text))) for text in texts]
    return collate(reduce(_joined, between_commas(quoted)), "C")


def json_item(array: ColumnElement[str], index: int) -> ColumnElement[str]:
    """Return one string of a JSON array."""
    return func.json_array_element_text(cast(array, JSON), index)


def key_list(row_keys: Sequence[str] = ()) -> FromClause:
    """Return row keys as a table, from one parameter."""
    keys = array_parameter(KEY_LIST, Text(), list(row_keys))
    items = func.unnest(keys).table_valued(column("row_key", Text)).render_derived(name="dedup_item")
    return select(items.c.row_key).subquery("dedup_key")


def readable(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a value as text where the driver cannot read it: an infinite date, a range, an extension's
    type."""
    return value if column.family in _NATIVE_FAMILIES else _text(column, value)


def depends_on_session(column: SourceColumn, *, is_key: bool) -> bool:  # noqa: ARG001
    """Return whether the column's text depends on the session's time zone, styles or digits.

    A range, an array or a composite may hold a date or a float.
    """
    return column.family is Family.OTHER or _FLOAT.match(column.type_name) is not None


def typed(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a value cast to the column's type."""
    return cast(value, _NamedType(column.type_name))


def _text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    if column.family is Family.BINARY:
        return _CATALOG.encode(cast(value, _NamedType("pg_catalog.bytea")), sql_text("hex"), type_=Text)
    if column.family is Family.BOOLEAN:
        return _as_text(cast(value, Integer))
    if column.family is Family.DATE:
        return _date_text(column, value)
    return _as_text(value)


def _as_text(value: ColumnElement[Any]) -> ColumnElement[str]:
    return type_coerce(cast(value, _TEXT), Text)


def _joined(one: ColumnElement[str], other: ColumnElement[str]) -> ColumnElement[str]:
    """Return what `||` does; an operator without its schema is looked up in the session's search path."""
    return _CATALOG.textcat(one, other, type_=Text)


def _date_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a date as in JSON, which no setting changes: "2019-02-14 20:00:00.5", "0044-03-15 BC"."""
    plain = _CATALOG.timezone(sql_text("UTC"), value) if _is_zoned(column) else value
    written = _CATALOG.btrim(_as_text(_CATALOG.to_json(plain)), sql_text('"'))
    return type_coerce(_CATALOG.replace(written, sql_text("T"), sql_text(" ")), Text)


def _is_exact(column: SourceColumn) -> bool:
    """Return whether values of the column that are equal always have the same text."""
    match column.family:
        case Family.TEXT:
            return column.collation in _PLAIN_COLLATIONS and not column.type_name.upper().startswith("CITEXT")
        case Family.NUMBER:
            return _UNSCALED.fullmatch(column.type_name) is None
    return column.family is not Family.OTHER


def _is_zoned(column: SourceColumn) -> bool:
    return column.family is Family.DATE and "WITH TIME ZONE" in column.type_name.upper()
