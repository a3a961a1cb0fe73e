"""Sortable texts and keys: their order is the order of the values."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from db_dedup.flow.rows.order import order_text, receipt, receipt_ranks, typed_key
from db_dedup.records import Family

NUMBERS = (
    st.integers(-(10**18), 10**18)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=8)
    | st.floats(allow_nan=False)
)


@given(NUMBERS, NUMBERS)
@example(-1.2, -1.23)
@example(Decimal("0.5"), Decimal("0.05"))
@example(9, 10)
@example(-9, -10)
@example(0, -1)
@example(float("-inf"), -1e308)
@example(float("inf"), 1e308)
def test_numbers(a: Any, b: Any) -> None:
    first, second = order_text(a, Family.NUMBER), order_text(b, Family.NUMBER)
    assert first is not None
    assert second is not None
    assert (first < second, first == second) == (a < b, a == b)


@given(st.datetimes(), st.datetimes())
def test_moments(a: datetime, b: datetime) -> None:
    first, second = order_text(a, Family.DATE), order_text(b, Family.DATE)
    assert first is not None
    assert second is not None
    assert (first < second, first == second) == (a < b, a == b)
    assert order_text(str(a), Family.DATE) == first


@given(st.text(st.characters(codec="utf-8"), max_size=64), st.text(st.characters(codec="utf-8"), max_size=64))
def test_texts(a: str, b: str) -> None:
    first, second = order_text(a, Family.TEXT), order_text(b, Family.TEXT)
    assert first is not None
    assert second is not None
    assert (first < second, first == second) == (a < b, a == b)


@given(
    st.none()
    | st.text(st.characters())
    | st.floats()
    | st.decimals()
    | st.integers()
    | st.binary()
    | st.datetimes(timezones=st.timezones()),
    st.sampled_from(Family),
)
def test_never_fails_and_fits(value: Any, family: Family) -> None:
    text = order_text(value, family)
    if text is not None:
        assert len(text) <= 64
        text.encode()


def test_null_and_nan_have_none() -> None:
    assert order_text(None, Family.NUMBER) is None
    assert order_text(float("nan"), Family.NUMBER) is None


def test_a_date_is_its_midnight() -> None:
    assert order_text(date(2019, 2, 14), Family.DATE) == order_text("2019-02-14 00:00:00", Family.DATE)


def test_dates_that_python_has_none_for() -> None:
    texts = ["-infinity", "4713-01-01 BC", "0045-03-15 BC", "0044-03-15 BC", "0044-03-16 12:00:00 BC"]
    texts += ["0044-03-16 12:00:00.5 BC", "0001-01-01", "9999-12-31 23:59:59.999999", "10000-01-01"]
    texts += ["294276-12-31 23:59:59", "5874897-12-31", "infinity"]
    values = [str(order_text(text, Family.DATE)) for text in texts]
    assert values == sorted(set(values))


def test_infinite_dates_are_last_and_first() -> None:
    texts = [order_text(value, Family.DATE) for value in ("-infinity", "2019-02-14", "infinity")]
    assert texts == sorted(texts, key=str)


@pytest.mark.parametrize(
    ("families", "keys"),
    [
        ([Family.NUMBER], ["-10", "-2", "0", "1.5", "2", "10"]),
        ([Family.TEXT], ["10", "2", "a", "拆"]),
        ([Family.TEXT, Family.NUMBER], ['["a","2"]', '["a","10"]', '["b","1"]']),
        ([Family.NUMBER], ["7", "no number"]),
        ([Family.NUMBER, Family.TEXT], ['["1","b"]', '["2","a"]', "not an array"]),
    ],
)
def test_row_keys(families: list[Family], keys: list[str]) -> None:
    backwards = list(reversed(keys))
    assert sorted(backwards, key=lambda key: typed_key(key, families)) == keys


@given(
    st.lists(
        st.text(st.characters()) | st.integers().map(str) | st.lists(st.text()).map(json.dumps), min_size=2
    ),
    st.lists(st.sampled_from(Family), min_size=1, max_size=3),
)
def test_any_row_keys_have_one_order(keys: list[str], families: list[Family]) -> None:
    ordered = sorted(set(keys), key=lambda key: typed_key(key, families))
    backwards = list(reversed(ordered))
    assert sorted(backwards, key=lambda key: typed_key(key, families)) == ordered
    assert len({typed_key(key, families) for key in keys}) == len(set(keys))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, "", "2024-01-02", "2024-01-03"]),
            st.integers(-3, 10**19).map(str) | st.sampled_from(["7", "07", "10", "a", "", "１"]),
        ),
        unique_by=lambda row: row[1],
    ),
    st.sampled_from([[Family.NUMBER], [Family.TEXT]]),
)
@example([(None, "10"), (None, "9")], [Family.NUMBER])
def test_ranks_are_the_places_in_the_order_of_receipt(
    rows: list[tuple[str | None, str]], families: list[Family]
) -> None:
    ranks = receipt_ranks([value for value, _ in rows], [key for _, key in rows], families).tolist()
    ordered = sorted(rows, key=lambda row: (receipt(row[0], row[1], families), row[1]))
    assert [ordered.index(row) for row in rows] == ranks


def test_a_text_with_a_nul_can_be_stored_in_every_database() -> None:
    assert order_text("a\0b", Family.TEXT) == "a\1b"
