"""Settings of other types than they take, and settings files as Windows writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from db_dedup.config import Settings, Text, Value, WatchedTable, Within
from db_dedup.errors import ConfigError
from tests.test_config import TABLE_SETTINGS, load, load_table, table


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("threshold = true", "threshold = true: it takes a number from 0 to 1"),
        ('threshold = "0.5"', 'threshold = "0.5": it takes a number from 0 to 1'),
        ('radius = "3"', 'radius = "3": it takes a whole number from 0 to 11'),
        ("radius = 3.0", "radius = 3.0: it takes a whole number from 0 to 11"),
        ('sketches = "no"', 'sketches = "no": it takes true or false'),
        ("sketches = 1", "sketches = 1: it takes true or false"),
        ("min_features = true", "min_features = true: it takes a whole number from 1 to 1000000000"),
        ("where = true", "where = true: it takes a text"),
        ("key = ['a', 5]", "key.1 = 5: it takes a text"),
        ("user_words = 'a'", 'user_words = "a": it takes a list of texts'),
        ("similarity = 'close'", 'similarity = "close": it takes "none" or "word_jaccard" or'),
        ("within = { column = 'a', by = 'week' }", 'within.0.by = "week": it takes "value" or "day"'),
        ("within = { column = 'a', byy = 'day' }", "there is no setting within.0.byy"),
        ("user_dictionary = 5", "user_dictionary = 5: it takes the name of a file"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_the_setting_takes(
    tmp_path: Path, line: str, fault: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load_table(tmp_path, line)
    assert str(raised.value).startswith(f"table 'petitions': {fault}")


def test_a_weight_of_another_type_is_refused_likewise(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"columns\.title = 1\.5: it takes a whole number from 1 to 1000"):
        load_table(tmp_path, "", "title = 1.5")
    with pytest.raises(ConfigError, match=r'columns\.title\.weight = "2": it takes a whole number'):
        load_table(tmp_path, "", "title = { weight = '2' }")
    with pytest.raises(ConfigError, match=r"url = 5: it takes a text"):
        load(tmp_path, "[database]\nurl = 5\n")


def test_every_setting_says_what_it_takes(tmp_path: Path) -> None:
    for setting in TABLE_SETTINGS:
        with pytest.raises(ConfigError, match=r'= "2024-01-31": it takes [^o]'):
            load_table(
                tmp_path, "" if setting == "columns" else f"{setting} = 2024-01-31", "title = 2024-01-31"
            )


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Text(weight=wrong(1.5)), "Text: weight = 1.5: it takes a whole number from 1 to 1000"),
        (lambda: Value(weight=wrong("2")), 'Value: weight = "2": it takes a whole number from 1 to 1000'),
        (lambda: Within(column="a", by=wrong("week")), 'Within: by = "week": it takes "value" or "day"'),
        (lambda: Settings(url=wrong(5)), "Settings: url = 5: it takes a text"),
        (
            lambda: WatchedTable(name="p", columns={"weight": wrong(True)}),
            "WatchedTable: columns.weight = true",
        ),
        (lambda: table(threshold=True), "table 'petitions': threshold = true: it takes a number from 0 to 1"),
        (lambda: table(columns={"title": 1.5}), "table 'petitions': columns.title = 1.5: it takes a whole"),
        (
            lambda: Settings(tables=wrong({"p": {"name": "p", "columns": {"weight": {"weight": 0}}}})),
            "Settings: tables.p.columns.weight.weight = 0: it takes a whole number from 1 to 1000",
        ),
    ],
)
def test_python_settings_are_as_strict(make: Callable[[], object], fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make()
    assert str(raised.value).startswith(fault)


def wrong(value: Any) -> Any:
    """A value of a type that the type checker would not let pass."""
    return value


def test_a_whole_number_is_a_number() -> None:
    assert table(threshold=1).rule.threshold == 1.0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
def test_a_settings_file_as_windows_writes_it(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "words.txt").write_bytes("信访件\r\n红星小区 100\r\n".encode(encoding))
    lines = ["[tables.'信访']", "user_dictionary = 'words.txt'", "[tables.'信访'.columns]", "'标题' = 1", ""]
    watched = load(tmp_path, "\r\n".join(lines).encode(encoding)).watched("信访")
    assert watched.user_words == ("信访件", "红星小区 100")


def test_windows_paths_in_a_settings_file(tmp_path: Path) -> None:
    url = r"sqlite:///C:\new\信访\petitions.db"
    assert load(tmp_path, f"[database]\nurl = '{url}'\n").url == url
    with pytest.raises(ConfigError, match="a Windows path in single quotes"):
        load(tmp_path, f'[database]\nurl = "{url}"\n')
    with pytest.raises(ConfigError, match=r"hex value.*a Windows path in single quotes"):
        load(tmp_path, '[database]\nurl = "sqlite:///C:\\Users\\petitions.db"\n')
    with pytest.raises(ConfigError, match="url has a control character in it: write a Windows"):
        load(tmp_path, '[database]\nurl = "sqlite:///C:\\new\\table.db"\n')


@pytest.mark.parametrize("line", ["www.12345.gov.cn 5", "https://a.cn 热线", "ＷＷＷ.a.cn"])
def test_a_user_word_that_no_text_can_have(line: str) -> None:
    """Its frequency would become the word."""
    with pytest.raises(ConfigError, match="left out of every text, such as a link") as error:
        table(user_words=["信访件 3 n", line])
    assert repr(line) in str(error.value)
    good = [
        "",
        " ",
        "\ufeff",
        "信访件 3 n",
        "云 计算 3",
        "热线www.12345.gov.cn 5",
        "c++20 7",
        "XX街道",
        "*** 3",
    ]
    assert table(user_words=good).user_words == tuple(good)
