"""An export while the answer changes: each row comes once, with its place when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, insert

from db_dedup import Deduplicator, TableBusyError
from db_dedup.app import table_export
from db_dedup.app.key_hashes import KeyHashes
from db_dedup.store.typed_rows import TypedSource
from tests.servers import Database

TEXTS = {
    "a": "城东区某工地夜间施工，噪音很大，影响附近居民休息，请有关部门尽快处理。",
    "b": "小区已经连续三天停水，物业没有说明原因，老人和孩子的生活很不方便。",
    "c": "五路公交车经常晚点，早高峰等车超过半小时，希望公交公司增加班次。",
    "d": "学校门口的路灯坏了两个月，孩子晚自习回家很不安全，希望尽快修好。",
    "e": "菜市场的垃圾没有人清理，夏天气味很大，苍蝇很多，请环卫部门管一管。",
}
STORED = "aaaa" + "bbb" + "cc" + "de"
"""The rows 1, 2, 3 ...: which text each has."""


@pytest.fixture
def letters(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> Deduplicator:
    """Four rows of a text, three of another, two of a third, two without duplicates."""
    monkeypatch.setattr(table_export, "_GROUPS_A_BATCH", 1)
    table = Table("letters", MetaData(), Column("id", Integer, primary_key=True), Column("content", Text))
    table.create(sqlite_database.engine)
    with sqlite_database.engine.begin() as connection:
        connection.execute(insert(table), [{"content": TEXTS[text]} for text in STORED])
    dedup = Deduplicator(sqlite_database.engine, "letters", {"content": 1})
    dedup.upgrade()
    dedup.scan()
    return dedup


def exported(dedup: Deduplicator, change: Callable[[], object], only_duplicates: bool) -> list[list[Any]]:
    """Key, group and size of each row; something changes after the first group has been written."""
    rows: Iterator[tuple[Any, ...]]
    rows = table_export.export_table(dedup, only_duplicates=only_duplicates).rows
    first = [next(rows) for _ in range(4)]
    change()
    return [[int(row[0]), int(row[1]), row[2]] for row in (*first, *rows)]


@pytest.mark.parametrize("only_duplicates", [False, True])
def test_each_row_comes_once_although_the_groups_change(letters: Deduplicator, only_duplicates: bool) -> None:
    def change() -> None:
        with letters.database.engine.begin() as connection:
            execute = connection.exec_driver_sql
            execute("DELETE FROM letters WHERE id = 5")  # represents the second group
            execute("UPDATE letters SET content = (SELECT content FROM letters WHERE id = 8) WHERE id = 2")
            execute("UPDATE letters SET content = (SELECT content FROM letters WHERE id = 1) WHERE id = 10")
        letters.scan()

    wanted = [[1, 1, 4], [2, 1, 4], [3, 1, 4], [4, 1, 4]]  # before the change
    wanted += [[8, 2, 3], [9, 2, 3], [6, 6, 2], [7, 6, 2], [10, 1, 4]]
    found = exported(letters, change, only_duplicates)
    assert sorted(found) == sorted(wanted if only_duplicates else [*wanted, [11, 11, 1]])


def test_without_a_change_no_row_is_read_for_nothing(
    letters: Deduplicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TypedSource, "pages", None)
    assert len(exported(letters, bool, only_duplicates=True)) == 9


@pytest.mark.parametrize("order", ["group", "key"])
def test_a_switch_to_other_settings_ends_the_export(letters: Deduplicator, order: Any) -> None:
    rows = table_export.export_table(letters, order=order).rows
    if order == "group":
        next(rows)
    Deduplicator(letters.database, "letters", {"content": 1}, preset="strict").scan()
    with pytest.raises(TableBusyError, match="export again"):
        list(rows)


def test_hashes_of_keys() -> None:
    known = KeyHashes()
    assert known.others(["1", "2"]) == ["1", "2"]
    for start in range(0, 1000, 7):
        known.add([str(key) for key in range(start, start + 7)])
    known.add([])
    assert known.others([str(key) for key in range(1010)]) == [str(key) for key in range(1001, 1010)]
