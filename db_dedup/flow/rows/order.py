"""Sortable forms of the order column's value and of the row key, which decides between equal values."""

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import eq
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.rows.values import FarDate, canonical_text, far_date, moment_of, parse_number
from db_dedup.records import Family

_LENGTH: Final = 64
_EXPONENT_OFFSET: Final = 5000
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")
# The first character of a number's text, in the order of the values.
_NEGATIVE, _ZERO, _POSITIVE, _INFINITE, _NO_NUMBER = "0", "1", "2", "3", "9"
# Before "0" and after "9", the first characters of other years; "-infinity" is before them, "infinity" after.
_BEFORE_CHRIST, _BEYOND_9999 = ".", ":"
_YEAR_DIGITS: Final = 7
_LEAST_STORABLE: Final = "\1"

TypedKey = tuple[tuple[int, Decimal | int, str], ...]
Receipt = tuple[bool, str, TypedKey]
"""When a row was received, as a value that sorts."""


def order_text(value: Any, family: Family) -> str | None:
    """Return a text of at most 64 characters that sorts by code points as its value does; None for NULL."""
    if value is None:
        return None
    moment = moment_of(value) if family is Family.DATE else None
    if moment is not None:
        return _moment_order(moment)
    text = canonical_text(value, family)
    if family is Family.DATE and (far := far_date(text)) is not None:
        return _far_order(far)
    if family in (Family.NUMBER, Family.BOOLEAN):
        return _number_order(text)
    return text[:_LENGTH].replace("\0", _LEAST_STORABLE)  # PostgreSQL stores no NUL


def typed_key(row_key: str, families: Sequence[Family]) -> TypedKey:
    """Return a row key as a value that sorts: numbers by value, all else by code points; it never fails."""
    return tuple(map(_typed, _components(row_key, len(families)), families))


def key_order(row_keys: Sequence[str], families: Sequence[Family]) -> NDArray[np.int64]:
    """Return int64[n]: the positions of the keys in the order of `typed_key`, equal ones as they were."""
    numbers = _whole_numbers(row_keys, families)
    if numbers is not None:
        return np.argsort(numbers, kind="stable")
    keys = [typed_key(key, families) for key in row_keys]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def receipt(order_value: str | None, row_key: str, families: Sequence[Family]) -> Receipt:
    """Return what sorts a row by the order column, NULL last, then by typed key."""
    return order_value is None, order_value or "", typed_key(row_key, families)


def receipt_ranks(
    order_values: Sequence[str | None], row_keys: Sequence[str], families: Sequence[Family]
) -> NDArray[np.int64]:
    """Return int64[n]: the place of each of n rows when they are sorted by `receipt`, then by row key."""
    count = len(row_keys)
    by_order = {
        value: place for place, value in enumerate(sorted({v for v in order_values if v is not None}))
    }
    orders = np.array([count if value is None else by_order[value] for value in order_values], np.int64)
    keys = _whole_numbers(row_keys, families)
    if keys is None:
        in_order = sorted(
            range(count), key=lambda i: (orders[i], typed_key(row_keys[i], families), row_keys[i])
        )
        order = np.array(in_order, np.int64)
    else:
        order = np.lexsort((keys, orders))
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    return ranks


def _whole_numbers(row_keys: Sequence[str], families: Sequence[Family]) -> NDArray[np.int64] | None:
    """Return the row keys as numbers if these sort as the typed keys do; else None."""
    if list(families) != [Family.NUMBER]:
        return None
    # As a rule a key is a number as Python writes it, of at most 64 bits: then equal numbers are equal texts.
    try:
        numbers = list(map(int, row_keys))
        is_plain = all(map(eq, map(str, numbers), row_keys))
        return np.array(numbers, np.int64) if is_plain else None
    except (ValueError, OverflowError):
        return None


def _components(row_key: str, count: int) -> list[str]:
    if count == 1:
        return [row_key]
    try:
        parts = json.loads(row_key)
    except (ValueError, RecursionError):
        return [row_key]
    is_ours = isinstance(parts, list) and len(parts) == count
    return [str(part) for part in parts] if is_ours else [row_key]


def _typed(text: str, family: Family) -> tuple[int, Decimal | int, str]:
    if family is Family.NUMBER:
        if text.isascii() and text.isdigit():
            return 0, int(text), text
        number = parse_number(text)
        if number is not None:
            return 0, number, text
    return 1, 0, text


def _number_order(text: str) -> str | None:
    """Return sign, exponent and digits of a number; exponent and digits complemented if it is negative."""
    if text == "NaN":
        return None
    if text in ("Infinity", "-Infinity"):
        return _INFINITE if text == "Infinity" else _NEGATIVE
    number = parse_number(text)
    if number is None:
        return (_NO_NUMBER + text)[:_LENGTH]
    if not number:
        return _ZERO
    digits = "".join(map(str, number.as_tuple().digits)).lstrip("0").rstrip("0")
    exponent = min(max(number.adjusted() + _EXPONENT_OFFSET, 0), 2 * _EXPONENT_OFFSET - 1)
    magnitude = f"{exponent:04}{digits}"[: _LENGTH - 2]
    if number > 0:
        return _POSITIVE + magnitude
    # The last character is above every digit, so that -1.2 comes after -1.23.
    return _NEGATIVE + magnitude.translate(_COMPLEMENT) + "~"


def _moment_order(moment: date | datetime) -> str:
    """Return a moment to the microsecond, always in the same width; a date counts as its midnight."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    return moment.isoformat(" ", "microseconds")


def _far_order(date: FarDate) -> str:
    """Return a mark, the year in a fixed width and the rest; before Christ the year is complemented."""
    year = f"{date.year:0{_YEAR_DIGITS}}"
    if date.is_before_christ:
        year = year.translate(_COMPLEMENT)
    mark = _BEFORE_CHRIST if date.is_before_christ else _BEYOND_9999
    return f"{mark}{year}-{date.month}-{date.day} {date.time}"[:_LENGTH]
