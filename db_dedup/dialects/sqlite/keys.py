"""Row keys in SQLite, where a column may hold values of any storage class.

The text of a key says which storage class its value has, so that the same value is found again:

| value | text |
|---|---|
| integer | its digits |
| real | 15 digits, or 17 where 15 do not give the same number again |
| text | itself |
| blob | `x'00ff'`; in a column declared as BLOB the hexadecimal digits alone |

A text that reads like a value of another class is written as `t'10'`. In a column declared as BLOB an integer
that reads like hexadecimal digits is written as `n'10'`.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    REAL,
    ColumnElement,
    FromClause,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    cast,
    collate,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import LargeBinary

from db_dedup.dialects.keys import (
    KEY_LIST,
    JsonList,
    between_commas,
    concatenate,
    is_day,
    sql_text,
    uuid_text,
)
from db_dedup.records import Family, SourceColumn

_BLOB_OF_HEX: Final = (
    (Path(__file__).with_name("sql") / "blob_of_hex.sql").read_text(encoding="utf-8").strip()
)
_ALL_BYTES: Final = bytes(range(256)).hex()
_STORES_TEXT: Final = re.compile(r"(?!.*INT).*(CHAR|CLOB|TEXT)", re.IGNORECASE)
"""Declared types whose affinity turns every number into text."""


class _BlobOfHex(FunctionElement[bytes]):
    """The blob of some hexadecimal digits; only since 3.41 SQLite has a function for it."""

    inherit_cache = True
    type = LargeBinary()


@compiles(_BlobOfHex)
def _write_blob_of_hex(element: _BlobOfHex, compiler: SQLCompiler, **options: Any) -> str:
    return _BLOB_OF_HEX.format(text=compiler.process(element.clauses, **options), bytes=_ALL_BYTES)


def key_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a value as text that says its storage class."""
    written = cast(value, Text)
    integer: ColumnElement[str] = written
    blob: ColumnElement[str] = func.lower(func.hex(value))
    if _is_blob(column):
        integer = case((_is_even(func.length(written)), _marked("n", written)), else_=written)
    else:
        blob = _marked("x", blob)
    text = case((_reads_otherwise(column, written), _marked("t", written)), else_=written)
    is_exact = cast(written, REAL) == value
    return case(
        (sql_text("integer"), integer),
        (sql_text("text"), text),
        (sql_text("blob"), blob),
        (sql_text("real"), case((is_exact, written), else_=_seventeen_digits(value))),
        value=func.typeof(value),
    )


def key_equals(
    column: SourceColumn, value: ColumnElement[Any], text: ColumnElement[str]
) -> ColumnElement[bool]:
    """Compare with the user's column on the left, so that its index serves, then compare the texts of both.

    By the column's affinity and collation alone, different values such as 1, 1.0 and '1' may be equal.
    """
    # The operator == is not used, since SQLAlchemy may swap its sides.
    return and_(
        value.bool_op("=")(_value_of(column, text)), collate(key_text(column, value), "BINARY") == text
    )


def key_value_text(column: SourceColumn, value: object) -> str | None:
    """Return how SQLAlchemy and the driver store a value of Python's, as a key; None for a wrong type.

    A moment has six decimal places, as SQLAlchemy writes it, and no time zone.
    """
    text: str | None = None
    match column.family, value:
        case _, str():
            text = str.__str__(value)
        case Family.BOOLEAN, bool():
            text = str(int(value))
        case _, bool():
            pass
        case Family.NUMBER | Family.BINARY | Family.OTHER, Integral():
            text = str(int(value))
            text = f"n'{text}'" if _is_blob(column) and len(text) % 2 == 0 else text
        case Family.NUMBER | Family.OTHER, Decimal() if value.is_finite():
            text = f"{float(value):.15g}" if value % 1 else f"{value:.0f}"
        case Family.DATE, date():
            text = _date_text(column, value)
        case _, bytes():
            text = value.hex() if _is_blob(column) else f"x'{value.hex()}'"
        case Family.NUMBER, UUID() if column.type_name == "NUMERIC":
            text = str(value)  # SQLAlchemy reports a type that SQLite does not know as NUMERIC
        case _, UUID():
            text = uuid_text(column, value)
    return text


def _date_text(column: SourceColumn, value: date) -> str | None:
    if isinstance(value, datetime):
        return None if is_day(column) else value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.isoformat() if is_day(column) else f"{value.isoformat()} 00:00:00.000000"


def is_found_by_text(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether a value is found by its text.

    A very large or small real may not be found by its digits. In a database in UTF-16, where a character has
    two bytes, no blob of an odd length can be made from its digits.
    """
    has_utf_16 = func.length(cast(sql_text("a"), LargeBinary)) > literal_column("1")
    # A CASE and not OR, since SQLite may evaluate both sides of an OR.
    return case(
        (func.typeof(value).in_([sql_text("integer"), sql_text("text"), sql_text("null")]), true()),
        (and_(func.typeof(value) == sql_text("blob"), not_(has_utf_16)), true()),
        else_=key_equals(column, value, key_text(column, value)),
    )


def readable(column: SourceColumn, value: ColumnElement[Any]) -> ColumnElement[Any]:  # noqa: ARG001
    """Return the value as it is stored."""
    return value


def depends_on_session(column: SourceColumn, *, is_key: bool) -> bool:  # noqa: ARG001
    """Return True: any column may hold a text that is no valid UTF-8."""
    return True


def json_array(texts: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    """Return a JSON array of strings; json_quote alone would write NULL as a word."""
    quoted = [func.nullif(func.json_quote(text), sql_text("null")) for text in texts]
    return concatenate(between_commas(quoted))


def json_item(array: ColumnElement[str], index: int) -> ColumnElement[str]:
    """Return one string of a JSON array."""
    return func.json_extract(array, sql_text(f"$[{index}]"))


def key_list(row_keys: Sequence[str] = ()) -> FromClause:
    """Return row keys as a table, from one parameter."""
    keys = bindparam(KEY_LIST, list(row_keys), type_=JsonList())
    items = func.json_each(keys).table_valued("value", name="dedup_item")
    return select(cast(items.c.value, Text).label("row_key")).subquery("dedup_key")


def _value_of(column: SourceColumn, text: ColumnElement[str]) -> ColumnElement[Any]:
    """Return the value that `key_text` wrote; as a CASE it has no affinity of its own."""
    marked = func.substr(text, literal_column("3"), func.length(text) - literal_column("3"))
    whens: list[tuple[Any, Any]] = [(_is_like(text, "t'*'"), marked)]
    if _is_blob(column):
        whens += [(_is_like(text, "n'*'"), cast(marked, Integer)), (_is_hexadecimal(text), _BlobOfHex(text))]
    else:
        whens.append((_is_like(text, "x'*'"), _BlobOfHex(marked)))
    if not _stores_text(column):
        whens += [(_is_integer(text), cast(text, Integer)), (_is_real(text), cast(text, REAL))]
    return case(*whens, else_=text)


def _reads_otherwise(column: SourceColumn, text: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether a stored text reads like the key of a value of another storage class."""
    readings = [_is_like(text, "[ntx]'*'")]
    if _is_blob(column):
        readings.append(_is_hexadecimal(text))
    if not _stores_text(column):
        readings += [_is_integer(text), _is_real(text)]
    return or_(*readings)


def _is_integer(text: ColumnElement[str]) -> ColumnElement[bool]:
    return cast(cast(text, Integer), Text) == text


def _is_real(text: ColumnElement[str]) -> ColumnElement[bool]:
    number = cast(text, REAL)
    return or_(cast(number, Text) == text, _seventeen_digits(number) == text)


def _is_hexadecimal(text: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether it reads like a blob's digits; "" is the empty blob."""
    return and_(not_(_is_like(text, "*[^0-9a-f]*")), _is_even(func.length(text)))


def _is_even(length: ColumnElement[int]) -> ColumnElement[bool]:
    return length.op("%")(literal_column("2")) == literal_column("0")


def _is_like(text: ColumnElement[str], pattern: str) -> ColumnElement[bool]:
    return text.op("GLOB", is_comparison=True)(sql_text(pattern))


def _marked(mark: str, text: ColumnElement[str]) -> ColumnElement[str]:
    return concatenate([sql_text(f"{mark}'"), text, sql_text("'")])


def _seventeen_digits(number: ColumnElement[Any]) -> ColumnElement[str]:
    return func.printf(sql_text("%!.17g"), number)


def _is_blob(column: SourceColumn) -> bool:
    return column.family is Family.BINARY


def _stores_text(column: SourceColumn) -> bool:
    return _STORES_TEXT.match(column.type_name) is not None
