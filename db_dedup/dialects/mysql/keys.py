"""Row keys in MySQL and MariaDB, independent of the session's time zone."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Date,
    FromClause,
    Text,
    and_,
    bindparam,
    case,
    cast,
    collate,
    column,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects import mysql

from db_dedup.dialects.keys import KEY_LIST, JsonList, between_commas, sql_text
from db_dedup.records import Family, SourceColumn

_DIGITS = re.compile(r"\((\d+)(?:, *(\d+))?\)")
_UTF8 = mysql.CHAR(charset="utf8mb4")
_EPOCH: ColumnElement[Any] = literal_column("TIMESTAMP'1970-01-01 00:00:00'")
_MICROSECOND: ColumnElement[Any] = literal_column("MICROSECOND")
_MICROSECONDS_A_SECOND: ColumnElement[Any] = literal_column("1000000")
_SECONDS_A_MICROSECOND: ColumnElement[Any] = literal_column("0.000001")


def key_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a value as text: dates in ISO form, in UTC where they have a zone, bytes in hexadecimal
    digits."""
    if column.family is Family.BINARY:
        return func.lower(func.hex(value))
    if column.family is Family.DATE:
        return _date_text(column, value)
    if _is(column, "BIT"):
        return cast(value.op("+")(literal_column("0")), _UTF8)
    return cast(readable(column, value), _UTF8)


def key_equals(
    column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
) -> ColumnElement[bool]:
    """Convert our text to the type, or to the character set and collation, of the user's column.

    Under a collation, texts that differ in case or in blanks at the end may be equal, so the bytes decide.
    """
    if column.family is Family.BINARY:
        return value == func.unhex(text)
    if column.family is Family.NUMBER:
        return value == cast(text, _number_type(column))
    if column.family is Family.DATE:
        return value == _date(column, text)
    if column.family is Family.TIME:
        return value == cast(text, mysql.TIME(fsp=6))
    if column.collation is None:
        return value == text
    return and_(
        value == _collated(text, column.collation), bytewise(key_text(column, value)) == bytewise(text)
    )


def bytewise(text: ColumnElement[str]) -> ColumnElement[Any]:
    """Return a text as its bytes in UTF-8: collations ignore case, or blanks at the end."""
    return cast(cast(text, _UTF8), mysql.BINARY)


def json_array(texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """Return a JSON array of strings."""
    return func.concat(*between_commas([func.json_quote(text) for text in texts]))


def json_item(array: ColumnElement[str], index: int) -> ColumnElement[str]:
    """Return one string of a JSON array."""
    return func.json_unquote(func.json_extract(array, sql_text(f"$[{index}]")))


def key_list(row_keys: Sequence[str] = ()) -> FromClause:
    """Return row keys as a table, from one parameter."""
    items = text(
        f"SELECT row_key FROM JSON_TABLE(:{KEY_LIST}, '$[*]' COLUMNS "  # noqa: S608 - a name of ours
        "(row_key VARCHAR(700) CHARACTER SET utf8mb4 PATH '$')) AS dedup_item"
    ).bindparams(bindparam(KEY_LIST, list(row_keys), type_=JsonList()))
    return items.columns(column("row_key", Text)).subquery("dedup_key")


def readable(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return dates as text: the session's time zone would shift some, and the driver does not know day 0.

    A CHAR is returned without the blanks at its end, which an SQL mode (PAD_CHAR_TO_FULL_LENGTH) adds.
    """
    if column.family is Family.DATE:
        return _date_text(column, value)
    return _trimmed(value, " ") if _is(column, "CHAR") else value


def depends_on_session(column: SourceColumn, *, is_key: bool) -> bool:
    """Return True for a key that is a TIMESTAMP: it is looked up in the session's time zone."""
    return is_key and _is_timestamp(column)


def _is_timestamp(column: SourceColumn) -> bool:
    """Return whether the column holds moments, which each session shows in its own time zone."""
    return _is(column, "TIMESTAMP")


def _date_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    if _is(column, "DATE"):
        return cast(value, _UTF8)
    if _is_timestamp(column):
        value = _in_utc(value)
    return _without_zero_fraction(cast(cast(value, mysql.DATETIME(fsp=6)), _UTF8))


def _without_zero_fraction(text: ColumnElement[str]) -> ColumnElement[str]:
    """Return `20:00:00.5` for `20:00:00.500000`, and `20:00:00` for `20:00:00.000000`."""
    for tail in ("0", "."):
        text = _trimmed(text, tail)
    return text


def _trimmed(text: ColumnElement[str], tail: str) -> ColumnElement[str]:
    return func.trim(literal_column(f"TRAILING '{tail}'").op("FROM")(text))


def _in_utc(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return a TIMESTAMP in UTC: it counts from 1970, whatever zone the session shows it in.

    The zero date counts as the epoch itself, which no TIMESTAMP holds.
    """
    microseconds = cast(func.unix_timestamp(value).op("*")(_MICROSECONDS_A_SECOND), BigInteger)
    # In a trigger, MariaDB's UNIX_TIMESTAMP returns NULL for the zero date.
    is_zero = value.op("+")(literal_column("0")) == literal_column("0")
    return case((is_zero, _EPOCH), else_=func.timestampadd(_MICROSECOND, microseconds, _EPOCH))


def _date(column: SourceColumn, text: ColumnElement[str]) -> ColumnElement[Any]:
    if _is(column, "DATE"):
        return cast(text, Date)
    moment = cast(text, mysql.DATETIME(fsp=6))
    if not _is_timestamp(column):
        return moment
    microseconds = func.timestampdiff(_MICROSECOND, _EPOCH, moment)
    # Not a division: it keeps no more digits than the session's div_precision_increment says.
    valid = func.from_unixtime(microseconds.op("*")(_SECONDS_A_MICROSECOND))
    zero = cast(sql_text("0000-00-00 00:00:00"), mysql.DATETIME(fsp=6))
    return case((moment == _EPOCH, zero), else_=valid)


def _collated(text: ColumnElement[str], collation: str) -> ColumnElement[str]:
    """Return a text in a collation and in its character set, whose name begins that of the collation."""
    charset: ColumnElement[Any] = literal_column(collation.partition("_")[0])
    return collate(func.convert(text.op("USING")(charset)), collation)


def _number_type(column: SourceColumn) -> Any:
    if _is(column, "DECIMAL") or _is(column, "NUMERIC"):
        digits = _DIGITS.search(column.type_name)
        return mysql.DECIMAL(int(digits[1]), int(digits[2] or 0)) if digits else mysql.DECIMAL(65, 30)
    is_unsigned = "UNSIGNED" in column.type_name.upper() or _is(column, "BIT")
    return mysql.INTEGER(unsigned=is_unsigned)


def _is(column: SourceColumn, type_name: str) -> bool:
    return re.match(rf"{type_name}\b", column.type_name, re.IGNORECASE) is not None
