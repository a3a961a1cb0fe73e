"""An export while the answer changes: each row comes once, with its place when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert

from db_dedup import DatabaseUnavailableError, Deduplicator, TableBusyError
from db_dedup.app import table_export
from db_dedup.app.key_hashes import KeyHashes
from db_dedup.store.memberships import find_memberships
from db_dedup.store.typed_rows import TypedSource
from tests.bad_input.test_during_the_scan import kill_all
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
    monkeypatch.setattr(table_export, "_GROUPS_A_BATCH", 1)
    return scanned_letters(sqlite_database)


def scanned_letters(database: Database) -> Deduplicator:
    """Four rows of a text, three of another, two of a third, two without duplicates."""
    table = Table("letters", MetaData(), Column("id", Integer, primary_key=True), Column("content", Text))
    table.create(database.engine)
    with database.engine.begin() as connection:
        connection.execute(insert(table), [{"content": TEXTS[text]} for text in STORED])
    dedup = Deduplicator(database.engine, "letters", {"content": 1})
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


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("order", ["group", "key"])
def test_a_lost_connection_is_one_error(
    database: Database, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot of the rows is lost, too, and Python would print a traceback if it were left to Python."""
    rows = table_export.export_table(scanned_letters(database), order=order).rows
    if order == "group":
        for _ in range(9):  # all that are in groups
            next(rows)

    def lost(connection: Connection, *arguments: Any) -> Any:
        kill_all(database)()
        return find_memberships(connection, *arguments)

    monkeypatch.setattr(table_export, "find_memberships", lost)
    with pytest.raises(DatabaseUnavailableError):
        list(rows)


def test_hashes_of_keys() -> None:
    known = KeyHashes()
    assert known.others(["1", "2"]) == ["1", "2"]
    for start in range(0, 1000, 7):
        known.add([str(key) for key in range(start, start + 7)])
    known.add([])
    assert known.others([str(key) for key in range(1010)]) == [str(key) for key in range(1001, 1010)]
