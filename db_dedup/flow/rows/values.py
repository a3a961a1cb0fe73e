"""Values of every type as text: equal for equal values, whichever database and driver they came from."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from db_dedup.records import Family

# Possessive: a million digits before a letter would otherwise be tried in all divisions in two.
_NUMBER = re.compile(r"[+-]?(\d++(?:\.\d*+)?|\.\d++)([eE][+-]?\d{1,4})?", re.ASCII)
_ESCAPED_NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")
_FAR_DATE = re.compile(r"(\d{4,7})-(\d\d)-(\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?))?( BC)?", re.ASCII)
# As MySQL writes TIME, which may be negative, and has up to 838 hours.
_DURATION = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_SURROGATES = re.compile("[\ud800-\udfff]+")
_WORDS_FOR_TRUE: Final = frozenset({"1", "t", "true", "y", "yes", "on"})
_WORDS_FOR_FALSE: Final = frozenset({"0", "f", "false", "n", "no", "off"})
_LONGEST_DATE: Final = len("2019-02-14")
_LONGEST_PLAIN_NUMBER: Final = 400
"""Digits: one with more is written with an exponent, so that `1e999999` stays short."""
_LARGEST_PLAIN_INTEGER: Final = 10**_LONGEST_PLAIN_NUMBER


def canonical_text(value: Any, family: Family) -> str:
    """Return a column's value as text; "" for NULL.

    Numbers become plain decimals without needless zeros. Times become ISO 8601 in UTC. Bytes become UTF-8
    text, or hexadecimal digits if they are none. JSON becomes compact with sorted keys. A text that is no
    value of the column's family stays as it is.
    """
    value = python_value(value)
    if value is None:
        return ""
    if isinstance(value, str):
        text = value if is_encodable(value) else _SURROGATES.sub("\ufffd", value)
        read = _STRING_READERS.get(family)
        return read(text) if read else text
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_text(bytes(value), family)
    if family is Family.BOOLEAN and isinstance(value, int | float | Decimal):
        return "1" if value else "0"
    return _object_text(value)


def canonical_texts(values: Sequence[Any], family: Family) -> Sequence[str]:
    """Return what `canonical_text` returns for each of many values; most columns hold nothing but texts."""
    is_plain = family not in _STRING_READERS and set(map(type, values)) <= {str}
    if is_plain and is_encodable("".join(values)):
        return values
    return [canonical_text(value, family) for value in values]


def python_value(value: Any) -> Any:
    """Return Python's own value of a scalar of numpy, as a row of a data frame has them; others stay."""
    if not isinstance(value, np.generic):
        return value
    if isinstance(value, np.floating):  # by its text: 0.1 in 32 bits would become 0.10000000149011612
        return Decimal(str(value))
    plain = value.item()
    if isinstance(plain, int) and isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype(f"{value.dtype.kind}8[us]").item()  # Python has no nanoseconds
    return plain


def number_text(value: int | float | Decimal) -> str:
    """Return the shortest plain decimal of a number: "1.5", "1000", "0"."""
    if isinstance(value, int):
        # Python refuses to write an integer of more than 4,300 digits, but not the same number as a Decimal.
        return str(Decimal(value) if abs(value) > _LARGEST_PLAIN_INTEGER else int(value))
    number = value if isinstance(value, Decimal) else Decimal(float.__repr__(value))
    if not number.is_finite():
        return "NaN" if number.is_nan() else str(number)
    if not number:
        return "0"
    if abs(number.adjusted()) > _LONGEST_PLAIN_NUMBER:
        return str(number)
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_number(text: str) -> Decimal | None:
    """Return the number that a text is; None if it is no number."""
    stripped = text.strip()
    return Decimal(stripped) if _NUMBER.fullmatch(stripped) else None


def moment_of(value: Any) -> date | datetime | None:
    """Return the date, or the moment in UTC without a zone, of a value or an ISO 8601 text; else None."""
    try:
        moment = _given_moment(value)
        return _in_utc(moment) if isinstance(moment, datetime) else moment
    except (ValueError, OverflowError):
        return None


def date_as_stored(value: Any, *, is_day: bool) -> Any:
    """Return a date or moment as a database stores it in a column of the other kind; any other value stays.

    A moment becomes its date in its own time zone (in PostgreSQL it may be that of the session), and a date
    the midnight at its beginning.

    Args:
        value: of a type of Python's, or an ISO 8601 text.
        is_day: whether the column has dates without a time.
    """
    try:
        moment = _given_moment(python_value(value))
        if isinstance(moment, datetime):
            return moment.date() if is_day else value
    except ValueError:
        return value
    return value if moment is None or is_day else datetime.combine(moment, time.min)


def _given_moment(value: Any) -> date | datetime | None:
    """Return a date or a moment in the zone that it was given in; ValueError for a text that is neither."""
    if isinstance(value, str):
        text = value.strip()
        is_date = len(text) <= _LONGEST_DATE
        return date.fromisoformat(text) if is_date else datetime.fromisoformat(text)
    return value if isinstance(value, date) else None


class FarDate(NamedTuple):
    """A date outside the range of Python's `date`, and the time that follows it, or ""."""

    year: int
    month: str
    day: str
    time: str
    is_before_christ: bool


def far_date(text: str) -> FarDate | None:
    """Return the date before Christ or after 9999 that a text is, as PostgreSQL writes it; else None."""
    found = _FAR_DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, time, era = found.groups()
    date = FarDate(int(year), month, day, time or "", era is not None)
    return date if date.is_before_christ or date.year > MAXYEAR else None


def _object_text(value: Any) -> str:
    if isinstance(value, int | float | Decimal):
        return number_text(value)
    if isinstance(value, date):
        return _moment_text(moment_of(value) or value)
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, dict | list | tuple):
        return _json_text(value)
    return canonical_text(str(value), Family.TEXT)


def holds_nul(row_key: str) -> bool:
    """Return whether a row key has a NUL character in it, at which SQLite's functions end a text."""
    return "\0" in row_key or (row_key.startswith('["') and _ESCAPED_NUL.search(row_key) is not None)


def is_encodable(text: str) -> bool:
    """Return whether a text is free of lone surrogates (broken bytes in Python): no database takes them."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bytes_text(value: bytes, family: Family) -> str:
    if family is Family.BINARY:
        return value.hex()
    if family in (Family.NUMBER, Family.BOOLEAN):  # MySQL's BIT
        return str(int.from_bytes(value))
    if family is Family.UUID and len(value) == 16:
        return str(UUID(bytes=value))
    try:
        return canonical_text(value.decode(), family)
    except UnicodeDecodeError:
        return value.hex()


def _in_utc(value: datetime) -> datetime:
    """Return the same moment in UTC without a zone; a moment without a zone counts as UTC."""
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _moment_text(moment: date | datetime) -> str:
    return moment.isoformat(" ") if isinstance(moment, datetime) else moment.isoformat()


def _duration_text(value: timedelta) -> str:
    """Return hours, minutes and seconds, as MySQL writes TIME."""
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    minutes, seconds = divmod(value.days * 86_400 + value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}" if value.microseconds else ""
    return f"{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"


def _json_text(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return canonical_text(text, Family.TEXT)


def _read_number(text: str) -> str:
    number = parse_number(text)
    return text if number is None else number_text(number)


def _read_boolean(text: str) -> str:
    word = text.strip().lower()
    if word in _WORDS_FOR_TRUE:
        return "1"
    return "0" if word in _WORDS_FOR_FALSE else text


def _read_moment(text: str) -> str:
    moment = moment_of(text)
    return text if moment is None else _moment_text(moment)


def _read_time(text: str) -> str:
    try:
        return time.fromisoformat(text.strip()).isoformat()
    except ValueError:
        found = _DURATION.fullmatch(text.strip())
    if found is None:
        return text
    sign, hours, minutes, seconds, fraction = found.groups("")
    value = timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(fraction.ljust(6, "0"))
    )
    return _duration_text(-value if sign else value)


def _read_uuid(text: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError:
        return text


def _read_other(text: str) -> str:
    """Return JSON in its canonical form: some drivers give it as text. All other texts stay."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return _json_text(json.loads(text))
    except (ValueError, RecursionError):
        return text


_STRING_READERS: Final[Mapping[Family, Callable[[str], str]]] = {
    Family.NUMBER: _read_number,
    Family.BOOLEAN: _read_boolean,
    Family.DATE: _read_moment,
    Family.TIME: _read_time,
    Family.UUID: _read_uuid,
    Family.OTHER: _read_other,
}
