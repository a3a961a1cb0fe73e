"""Equal values give equal text, whichever database and driver they came from."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow.rows.values import canonical_text
from db_dedup.records import Family

SHANGHAI = timezone(timedelta(hours=8))
A_LONG_NUMBER = "123456789012345678901234567890.123456789"
AN_ID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"


@pytest.mark.parametrize(
    ("value", "family", "expected"),
    [
        (None, Family.TEXT, ""),
        (None, Family.NUMBER, ""),
        ("  as it is ", Family.TEXT, "  as it is "),
        ("1.50", Family.TEXT, "1.50"),
        ("1.50", Family.NUMBER, "1.5"),
        (1.5, Family.NUMBER, "1.5"),
        (Decimal("1.50"), Family.NUMBER, "1.5"),
        (Decimal("1E+3"), Family.NUMBER, "1000"),
        (1e3, Family.NUMBER, "1000"),
        (1e16, Family.NUMBER, "10000000000000000"),
        (0.1, Family.NUMBER, "0.1"),
        (-0.0, Family.NUMBER, "0"),
        ("-0", Family.NUMBER, "0"),
        (
            Decimal("123456789012345678901234567890.123456789"),
            Family.NUMBER,
            "123456789012345678901234567890.123456789",
        ),
        (float("nan"), Family.NUMBER, "NaN"),
        (Decimal("Infinity"), Family.NUMBER, "Infinity"),
        (float("-inf"), Family.NUMBER, "-Infinity"),
        (Decimal("1e999999"), Family.NUMBER, "1E+999999"),
        ("n/a", Family.NUMBER, "n/a"),
        ("１２", Family.NUMBER, "１２"),
        (b"\x05", Family.NUMBER, "5"),
        (True, Family.BOOLEAN, "1"),
        (False, Family.BOOLEAN, "0"),
        (1, Family.BOOLEAN, "1"),
        (b"\x00", Family.BOOLEAN, "0"),
        ("true", Family.BOOLEAN, "1"),
        ("F", Family.BOOLEAN, "0"),
        ("perhaps", Family.BOOLEAN, "perhaps"),
        (True, Family.OTHER, "1"),
        (date(2019, 2, 14), Family.DATE, "2019-02-14"),
        ("2019-02-14", Family.DATE, "2019-02-14"),
        (datetime(2019, 2, 14, 20), Family.DATE, "2019-02-14 20:00:00"),
        ("2019-02-14T20:00:00", Family.DATE, "2019-02-14 20:00:00"),
        ("2019-02-14 20:00:00.000000", Family.DATE, "2019-02-14 20:00:00"),
        ("2019-02-14 20:00:00.5", Family.DATE, "2019-02-14 20:00:00.500000"),
        (datetime(2019, 2, 14, 20, tzinfo=SHANGHAI), Family.DATE, "2019-02-14 12:00:00"),
        ("2019-02-14 20:00:00+08:00", Family.DATE, "2019-02-14 12:00:00"),
        ("2019-02-14T12:00:00Z", Family.DATE, "2019-02-14 12:00:00"),
        ("0001-01-01 00:00:00+08:00", Family.DATE, "0001-01-01 00:00:00+08:00"),
        (datetime(1, 1, 1, tzinfo=SHANGHAI), Family.DATE, "0001-01-01 00:00:00+08:00"),
        ("infinity", Family.DATE, "infinity"),
        ("0000-00-00", Family.DATE, "0000-00-00"),
        (1550174400, Family.DATE, "1550174400"),
        (time(20, 0), Family.TIME, "20:00:00"),
        ("20:00", Family.TIME, "20:00:00"),
        (timedelta(hours=20), Family.TIME, "20:00:00"),
        (timedelta(hours=-26, microseconds=5), Family.TIME, "-25:59:59.999995"),
        (b"\xe6\x8b\x86", Family.TEXT, "拆"),
        (b"\xff\x00", Family.TEXT, "ff00"),
        (b"AB", Family.BINARY, "4142"),
        (memoryview(b"\xab"), Family.BINARY, "ab"),
        ("AB", Family.BINARY, "AB"),
        (UUID(AN_ID), Family.UUID, AN_ID),
        (AN_ID.upper(), Family.UUID, AN_ID),
        (AN_ID.replace("-", ""), Family.UUID, AN_ID),
        (UUID(AN_ID).bytes, Family.UUID, AN_ID),
        ("no id", Family.UUID, "no id"),
        ({"b": [1, None], "a": "拆"}, Family.OTHER, '{"a":"拆","b":[1,null]}'),
        ('{"b": [1, null],  "a": "\\u62c6"}', Family.OTHER, '{"a":"拆","b":[1,null]}'),
        ("[1,5)", Family.OTHER, "[1,5)"),
        ('{a,"b c"}', Family.OTHER, '{a,"b c"}'),
        ("lone \ud800", Family.TEXT, "lone \ufffd"),
        ({"a": "\ud800"}, Family.OTHER, '{"a":"\ufffd"}'),
    ],
)
def test_examples(value: Any, family: Family, expected: str) -> None:
    assert canonical_text(value, family) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**15), max_value=10**15))
def test_a_number_is_the_same_from_every_driver(number: Decimal) -> None:
    text = canonical_text(number, Family.NUMBER)
    assert Decimal(text) == number
    assert canonical_text(str(number), Family.NUMBER) == text
    assert canonical_text(number * Decimal("1.000"), Family.NUMBER) == text
    if Decimal(repr(float(number))) == number:
        assert canonical_text(float(number), Family.NUMBER) == text


@given(st.floats(allow_nan=False))
def test_a_float_is_not_rounded(number: float) -> None:
    assert float(canonical_text(number, Family.NUMBER)) == number


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), st.integers(-720, 720))
def test_a_moment_is_the_same_in_every_zone(moment: datetime, minutes: int) -> None:
    text = canonical_text(moment, Family.DATE)
    elsewhere = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert canonical_text(elsewhere, Family.DATE) == text
    assert canonical_text(elsewhere.isoformat(), Family.DATE) == text
    assert canonical_text(str(moment), Family.DATE) == text


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(st.lists(JSON_VALUES) | st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_VALUES))
def test_json_is_the_same_as_object_and_as_text(value: Any) -> None:
    text = canonical_text(value, Family.OTHER)
    assert json.loads(text) == value
    assert canonical_text(json.dumps(value, indent=2), Family.OTHER) == text


@pytest.mark.parametrize(
    ("value", "family", "expected"),
    [
        (np.float64(1.5), Family.OTHER, "1.5"),
        (np.float64("nan"), Family.NUMBER, "NaN"),
        (np.float32(0.1), Family.NUMBER, "0.1"),
        (np.float32(1000), Family.TEXT, "1000"),
        (np.longdouble(1.5), Family.NUMBER, "1.5"),
        (np.clongdouble(1), Family.OTHER, "(1+0j)"),
        (np.int64(-5), Family.NUMBER, "-5"),
        (np.bool_(True), Family.BOOLEAN, "1"),
        (np.bool_(False), Family.OTHER, "0"),
        (np.str_("拆"), Family.TEXT, "拆"),
        (np.bytes_(b"\xff"), Family.BINARY, "ff"),
        (np.datetime64("2019-02-14T20:00:00", "ns"), Family.DATE, "2019-02-14 20:00:00"),
        (np.datetime64("2019-02-14", "D"), Family.DATE, "2019-02-14"),
        (np.datetime64("NaT"), Family.DATE, ""),
        (np.timedelta64(90, "m"), Family.TIME, "01:30:00"),
    ],
    ids=repr,
)
def test_a_scalar_of_numpy_is_its_value(value: Any, family: Family, expected: str) -> None:
    assert canonical_text(value, family) == expected


def test_a_whole_number_of_any_length() -> None:
    for sign in (1, -1):
        assert canonical_text(sign * (10**6000 + 7), Family.NUMBER) == "-"[sign:] + "1" + "0" * 5999 + "7"
        assert canonical_text(sign * 10**400, Family.NUMBER) == "-"[sign:] + "1" + "0" * 400


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.datetimes(timezones=st.timezones())
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.lists(st.text(st.characters()))
)


@given(ANYTHING, st.sampled_from(Family))
def test_never_fails_and_is_always_storable(value: Any, family: Family) -> None:
    text = canonical_text(value, family)
    text.encode()
    assert canonical_text(text, Family.TEXT) == text


def test_a_text_of_very_many_digits_that_is_no_number_is_read_once() -> None:
    """It would otherwise be divided in two at each digit, which takes hours."""
    for text in ("1" * 1_000_000 + "x", "1." + "1" * 1_000_000 + "x", "." + "1" * 1_000_000 + "e"):
        assert canonical_text(text, Family.NUMBER) == text
