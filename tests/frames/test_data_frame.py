"""The same duplicates in pandas, Polars and PyArrow as in a database."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from db_dedup import Text, Value, find_duplicates
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.sample import generate_petitions
from tests.forms import in_form, texts

SAMPLE = generate_petitions(80, seed=3, duplicate_share=0.4)
DATA: dict[str, list[Any]] = {
    "id": [f"p{petition.id}" for petition in SAMPLE.petitions],
    "title": [petition.title for petition in SAMPLE.petitions],
    "content": [petition.content for petition in SAMPLE.petitions],
    "region": [petition.region for petition in SAMPLE.petitions],
    "created_at": [petition.created_at for petition in SAMPLE.petitions],
}
EAST = timezone(timedelta(hours=8))
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def columns_of(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pa.Table):
        return dict(frame.to_pydict())
    if isinstance(frame, pl.DataFrame):
        return dict(frame.to_dict(as_series=False))
    return {name: frame[name].tolist() for name in frame.columns}


@pytest.fixture(params=FRAMES)
def make(request: pytest.FixtureRequest) -> Callable[[dict[str, list[Any]]], Any]:
    found: Callable[[dict[str, list[Any]]], Any] = FRAMES[request.param]
    return found


def test_each_row_gets_its_group(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    frame = make(DATA)
    found = find_duplicates(frame)
    assert type(found) is type(frame)
    columns = columns_of(found)
    assert list(columns) == [*DATA, "duplicate_group", "group_size", "is_representative"]
    group, size, first = (columns[name] for name in list(columns)[-3:])
    assert columns["id"] == DATA["id"]
    assert [i == g for i, g in enumerate(group)] == first
    assert [group.count(g) for g in group] == size
    planted = {(pair.id_a - 1, pair.id_b - 1) for pair in SAMPLE.pairs}
    together = {(a, b) for b in range(len(group)) for a in range(b) if group[a] == group[b]}
    assert len(together & planted) > len(planted) / 2
    assert max(size) > 1


def test_all_frames_give_the_same() -> None:
    found = [
        columns_of(find_duplicates(make(DATA), ["content"]))["duplicate_group"] for make in FRAMES.values()
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("numbers", "first"), [([10, 9, 100], 1), ([0.5, -1.5, 1e9], 1), ([10, None, 9], 2), ([1e3, 9, 10], 1)]
)
def test_numbers_are_ordered_by_their_size(numbers: list[float | None], first: int) -> None:
    text = "小区楼道的路灯坏了三个月没有人来修理，请尽快处理"
    frame = pl.DataFrame({"body": [text] * 3, "received": numbers}, strict=False)
    assert find_duplicates(frame, ["body"], order="received")["duplicate_group"].to_list() == [first] * 3


@pytest.mark.parametrize(
    "values",
    [
        [Decimal(10), Decimal("9.5"), Decimal(100)],
        [2**64, 2**63, 2**65],
        [timedelta(hours=100), timedelta(hours=20), timedelta(hours=300)],
        [0.1, -math.inf, math.inf],
        [datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 13, tzinfo=EAST), None],
        ["b", "a", "c"],
        ["10", 9, None],
        [[2], [1], [3]],
    ],
)
def test_values_are_ordered_by_what_they_are(values: list[Any]) -> None:
    text = "小区楼道的路灯坏了三个月没有人来修理，请尽快处理"
    frame = pd.DataFrame(
        {"order": [1, 2, 3], "body": [text] * 3, "received": pd.Series(values, dtype=object)}
    )
    first = 0 if values == ["10", 9, None] else 1  # by their texts
    assert find_duplicates(frame, ["body"], order="received")["duplicate_group"].tolist() == [first] * 3


def test_decimal_columns_are_ordered_by_size(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    text = "小区楼道的路灯坏了三个月没有人来修理，请尽快处理"
    frame = make({"body": [text] * 3, "received": [Decimal(10), Decimal("9.5"), None]})
    assert columns_of(find_duplicates(frame, ["body"], order="received"))["duplicate_group"] == [1] * 3


def test_scalars_of_numpy_in_a_column_of_objects() -> None:
    text = "小区楼道的路灯坏了三个月没有人来修理，请尽快处理"
    frame = pd.DataFrame({"body": [text] * 4}).assign(
        cost=pd.Series([np.float64(1.5), 1.5, np.bool_(True), True], dtype=object)
    )
    found = find_duplicates(frame, ["body"], within=["cost"])
    assert found["duplicate_group"].tolist() == [0, 0, 2, 2]


def test_settings_are_those_of_a_table() -> None:
    frame = pl.DataFrame(
        {
            "body": ["小区楼道的路灯坏了三个月没有人来修理，请尽快处理"] * 3,
            "region": ["东", "西", "东"],
            "body_date": [3, 2, 1],
        }
    )
    assert find_duplicates(frame, ["body"])["duplicate_group"].to_list() == [0, 0, 0]
    assert find_duplicates(frame, ["body"], within="region")["duplicate_group"].to_list() == [0, 1, 0]
    with_value: dict[str, Text | Value] = {"body": Text(), "region": Value(weight=9)}
    assert find_duplicates(frame, with_value, preset="strict")["group_size"].to_list() == [2, 1, 2]
    assert find_duplicates(frame, ["body"], order="body_date")["duplicate_group"].to_list() == [2, 2, 2]


def test_the_index_of_a_pandas_frame_stays() -> None:
    frame = pd.DataFrame({"body": ["路灯坏了三个月没有人来修理"] * 2 + ["自来水停了"]}, index=[7, 3, 7])
    found = find_duplicates(frame, ["body"])
    assert found.index.tolist() == [7, 3, 7]
    assert found["duplicate_group"].tolist() == [0, 0, 2]
    assert list(frame.columns) == ["body"]


def test_empty_cells_and_odd_values() -> None:
    frame = pd.DataFrame(
        {
            "body": ["路灯坏了三个月没有人来修理", None, float("nan"), "路灯坏了三个月没有人来修理"],
            "when": [datetime(2019, 2, 14, tzinfo=UTC), pd.NaT, None, Decimal("1.50")],
            "Body": [b"\xff", [1, 2], {"a": 1}, "\ud800"],
        }
    )
    assert find_duplicates(frame, ["body"])["duplicate_group"].tolist() == [0, 1, 2, 0]


def test_frames_of_odd_shapes(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    assert columns_of(find_duplicates(make({"body": []}), ["body"]))["duplicate_group"] == []
    taken: dict[str, list[Any]] = {"body": ["路灯坏了三个月没有人来修理"], "group_size": [5]}
    assert list(columns_of(find_duplicates(make(taken), ["body"])))[2:] == [
        "duplicate_group",
        "group_size_",
        "is_representative",
    ]


@pytest.mark.parametrize(
    ("frame", "columns", "error"),
    [
        (pl.DataFrame({"body": ["a"]}), ["text"], UnknownNameError),
        (pl.DataFrame({"n": [1, 2]}), None, ConfigError),
        (pl.LazyFrame({"body": ["a"]}), ["body"], ConfigError),
        ([["body"]], ["body"], ConfigError),
    ],
)
def test_bad_input(frame: Any, columns: list[str] | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        find_duplicates(frame, columns)


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="presett"):
        find_duplicates(pl.DataFrame({"body": ["a"]}), ["body"], presett="strict")


def test_two_columns_of_one_name_are_an_error_of_ours() -> None:
    cells = [pa.array(["a"]), pa.array(["b"]), pa.array(["c"])]
    for frame in (
        pd.DataFrame([["a", "b", "c"]], columns=["body", "title", "body"]),
        pa.Table.from_arrays(cells, names=["body", "title", "body"]),
    ):
        with pytest.raises(ConfigError, match="more than one column 'body': rename"):
            find_duplicates(frame, ["body"])


def test_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave key out"):
        find_duplicates(pl.DataFrame(DATA), ["content"], key="id")


def test_columns_may_be_named_by_numbers() -> None:
    """As those of a pandas DataFrame that was made without names."""
    frame = pd.DataFrame([[1, "路灯坏了三个月，没有人来修理"], [2, "路灯坏了三个月，没有人来修理。"]])
    numbered: list[Any] = [[1], {1: 2}]
    for columns in numbered:
        assert find_duplicates(frame, columns)["duplicate_group"].tolist() == [0, 0]


def test_a_template_with_other_details_needs_the_threshold_that_the_warning_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    template = (
        "甲方{}与乙方{}经协商一致，甲方将位于{}路{}号的房屋出租给乙方使用，月租金人民币{}元，于每月{}日前支付。乙方不得擅自改变房屋"
        "结构和用途，不得转租。本合同一式两份，双方各执一份，自签字之日起生效。"
    )
    own = [text[:3] for text in texts(120)]
    bodies = [
        template.format(*own[3 * n : 3 * n + 3], 17 * n + 10, 130 * n + 1000, n % 28 + 1) for n in range(40)
    ]
    frame = pl.DataFrame({"body": [*bodies, bodies[7].replace("一式两份", "一式三份")]})
    with caplog.at_level(logging.WARNING):
        assert find_duplicates(frame)["group_size"].max() == 41
    assert "raise `threshold` to 0.9" in caplog.text
    found = find_duplicates(frame, threshold=0.9)
    assert found["duplicate_group"].to_list() == [*range(40), 7]


def test_what_makes_pairs_doubtful_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        find_duplicates(pl.DataFrame({"body": ["小区楼道的路灯坏了三个月没有人来修理"] * 30}), ["body"])
    assert "one group holds 30 of the 30 rows" in caplog.text
    caplog.clear()
    columns: dict[str, Text | Value] = {"body": Text(), "region": Value()}
    with caplog.at_level(logging.WARNING):
        find_duplicates(pl.DataFrame({"body": in_form(texts(60)), "region": ["东"] * 60}), columns)
    assert "column body: in 100% of the sampled texts" in caplog.text
    assert "column region" not in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        find_duplicates(pl.DataFrame(DATA), ["content"])
    assert caplog.text == ""
