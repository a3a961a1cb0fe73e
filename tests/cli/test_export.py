"""`export`: the rows of a table with their groups, in files and on stdout."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet
import pytest
from python_calamine import CalamineWorkbook
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Float,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    insert,
)
from sqlalchemy.dialects.mysql import BIGINT

from db_dedup import ConfigError, Deduplicator, InvalidArgumentError
from db_dedup.app.table_export import ExportOrder, export_table
from db_dedup.cli.shared.output import print_json
from tests.cli.conftest import fail, rows, succeed, view
from tests.servers import Database

OURS = ["row_key", "group_id", "group_size", "is_representative", "kind"]
FORMULA = "=1+1 请尽快处理夜间施工噪音扰民的问题"
BLANK = "没有别的说明"


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_all_rows_come_with_their_groups(scanned: Database) -> None:
    found = records(succeed("export", "petitions").stdout)
    stored = {r["id"]: r for r in found}
    assert list(found[0]) == [*OURS, "id", "title", "content", "region", "channel", "petitioner", "phone",
                              "created_at"]  # fmt: skip
    assert len(stored) == len(found) == rows(scanned.engine, "SELECT count(*) FROM petitions")[0][0]
    members = rows(scanned.engine, f"SELECT row_key, group_id FROM {view(scanned, 'duplicate_members')}")
    assert {key: r["group_id"] for key, r in stored.items()} == {
        **{key: key for key in stored},
        **dict(members),
    }
    sizes = dict(rows(scanned.engine, f"SELECT group_id, size FROM {view(scanned, 'duplicate_groups')}"))
    assert [int(r["group_size"]) for r in found] == [sizes.get(r["group_id"], 1) for r in found]
    assert [r["is_representative"] for r in found] == [str(r["id"] == r["group_id"]) for r in found]
    for key, r in stored.items():
        kinds = rows(
            scanned.engine,
            f"SELECT kind FROM {view(scanned, 'duplicate_pairs')} WHERE '{key}' IN (key_a, key_b)",
        )
        strength = ["copy", "edited", "contained", "partial"]
        wanted = min((k for (k,) in kinds if k), key=strength.index, default="")
        is_canonical = r["is_representative"] == "True"
        assert r["kind"] == ("" if is_canonical else wanted), key
    (content,) = rows(scanned.engine, "SELECT content FROM petitions WHERE id = 3")[0]
    assert stored["3"]["content"] == content


def test_groups_stand_together_in_the_order_they_were_received(scanned: Database) -> None:
    found = records(succeed("export", "petitions", "--only-duplicates").stdout)
    groups = list(dict.fromkeys(r["group_id"] for r in found))
    wanted = f"SELECT group_id FROM {view(scanned, 'duplicate_groups')} ORDER BY size DESC, group_id"
    assert [(group,) for group in groups] == rows(scanned.engine, wanted)
    assert groups
    for group in groups:
        received = [(r["created_at"], int(r["id"])) for r in found if r["group_id"] == group]
        assert received == sorted(received)
        assert str(received[0][1]) == group
    places = [groups.index(r["group_id"]) for r in found]
    assert places == sorted(places)
    by_key = records(succeed("export", "petitions", "--only-duplicates", "--order", "key").stdout)
    assert [int(r["id"]) for r in by_key] == sorted(int(r["id"]) for r in found)


def test_columns_are_chosen(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    found = records(succeed("export", "petitions", "--columns", "region, title").stdout)
    assert list(found[0]) == [*OURS, "region", "title"]
    assert "titel" in str(fail("export", "petitions", "--columns", "titel"))
    assert "choose from group, key" in str(fail("export", "petitions", "--order", "size"))
    assert "has not been scanned" not in str(fail("export", "letters"))


@pytest.mark.parametrize("name", ["found.csv", "found.xlsx", "found.parquet"])
def test_a_file_is_not_replaced_unless_asked_for(scanned: Database, name: str) -> None:
    assert scanned.name == "sqlite"
    Path(name).write_text("mine")
    assert "--force" in str(fail("export", "petitions", "--output", name))
    assert Path(name).read_text() == "mine"
    succeed("export", "petitions", "--output", name, "--force")
    assert Path(name).read_bytes() != b"mine"
    assert sorted(path.name for path in Path().iterdir()) == ["dedup.toml", name]


def test_a_file_that_cannot_be_written_is_refused_first(scanned: Database) -> None:
    assert scanned.name == "sqlite"
    assert ".csv, .xlsx, .parquet" in str(fail("export", "petitions", "--output", "found.txt"))
    assert "no folder" in str(fail("export", "petitions", "--output", "nowhere/found.csv"))


CARD = 110101199001011231
"""As long as the number of an identity card: a cell of a workbook would change its last digits."""
ODD = Table(
    "odd",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("content", Text),
    Column("Group_ID", String(9)),
    Column("own_Group_ID", String(9)),
    Column("amount", Numeric(8, 2)),
    Column("share", Float),
    Column("is_open", Boolean),
    Column("day", Date),
    Column("moment", DateTime),
    Column("card", BigInteger().with_variant(BIGINT(unsigned=True), "mysql", "mariadb")),
)
VALUES: list[dict[str, Any]] = [
    {
        "id": 1, "content": FORMULA, "Group_ID": "g", "own_Group_ID": "-1", "amount": Decimal("12.50"),
        "share": 0.25, "is_open": True, "day": date(2024, 2, 29), "moment": datetime(2024, 2, 29, 8, 30),
        "card": CARD,
    },
    {
        "id": 2, "content": FORMULA, "Group_ID": None, "own_Group_ID": "@x", "amount": None,
        "share": None, "is_open": False, "day": None, "moment": None, "card": None,
    },
    {
        "id": 3, "content": BLANK, "Group_ID": "", "own_Group_ID": None, "amount": Decimal(-3),
        "share": -1.5, "is_open": None, "day": date(1850, 1, 2), "moment": datetime(2024, 3, 1),
        "card": 10**15 - 1,
    },
]  # fmt: skip


@pytest.fixture
def odd(database: Database) -> Database:
    ODD.create(database.engine)
    with database.engine.begin() as connection:
        connection.execute(insert(ODD), VALUES)
    dedup = Deduplicator(database.engine, "odd", {"content": 1})
    dedup.upgrade()
    dedup.scan()
    return database


def test_values_keep_their_types_in_every_file(odd: Database) -> None:
    for name in ("odd.csv", "odd.xlsx", "odd.parquet"):
        succeed("export", "odd", "--url", odd.url, "--output", name)
    header = [*OURS, "id", "content", "own_own_Group_ID", "own_Group_ID", "amount", "share", "is_open",
              "day", "moment", "card"]  # fmt: skip
    with Path("odd.csv").open(encoding="utf-8-sig", newline="") as file:
        names, first, second, third = csv.reader(file)
    assert names == header
    assert first[:8] == ["1", "1", "2", "True", "", "1", f"'{FORMULA}", "g"]
    assert first[8] == "-1"
    assert float(first[9]) == 12.5
    yes, no = ("True", "False") if odd.name in ("sqlite", "postgresql") else ("1", "0")
    assert first[10:] == ["0.25", yes, "2024-02-29", "2024-02-29 08:30:00", str(CARD)]
    assert second == ["2", "1", "2", "False", "copy", "2", f"'{FORMULA}", "", "'@x", "", "", no, "", "", ""]
    assert third[11:] == ["", "1850-01-02", "2024-03-01 00:00:00", str(10**15 - 1)]
    sheet = CalamineWorkbook.from_path("odd.xlsx").get_sheet_by_index(0).to_python()
    assert sheet[0] == header
    assert sheet[1][6] == FORMULA
    assert sheet[1][9:] == [12.5, 0.25, True, date(2024, 2, 29), datetime(2024, 2, 29, 8, 30), str(CARD)]
    assert sheet[2][9:] == ["", "", False, "", "", ""]
    assert sheet[3][12] == "1850-01-02"
    assert sheet[3][14] == 10**15 - 1
    table = pyarrow.parquet.read_table("odd.parquet").to_pydict()
    assert list(table) == header
    assert table["content"] == [FORMULA, FORMULA, BLANK]
    assert table["group_size"] == [2, 2, 1]
    assert table["is_representative"] == [True, False, True]
    assert table["own_own_Group_ID"] == ["g", None, ""]
    assert table["amount"] == [12.5, None, -3.0]
    assert table["is_open"] == [True, False, None]
    assert table["day"] == [date(2024, 2, 29), None, date(1850, 1, 2)]
    assert table["moment"] == [datetime(2024, 2, 29, 8, 30), None, datetime(2024, 3, 1)]
    assert table["card"] == [CARD, None, 10**15 - 1]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_value_of_another_type_than_its_column_is_named(odd: Database) -> None:
    with odd.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE odd SET share = 'unknown' WHERE id = 3")
    with pytest.raises(ConfigError, match=r"'share'.*--columns"):
        raise fail("export", "odd", "--url", odd.url, "--output", "odd.parquet")
    assert list(Path().iterdir()) == []
    succeed("export", "odd", "--url", odd.url, "--output", "odd.csv")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_wrong_arguments_are_named(odd: Database) -> None:
    dedup = Deduplicator(odd.engine, "odd")
    with pytest.raises(InvalidArgumentError, match="columns should be a list"):
        export_table(dedup, "content")
    with pytest.raises(InvalidArgumentError, match="no order"):
        export_table(dedup, order="size")  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["group", "key"])
def test_rows_are_not_collected(sqlite_database: Database, order: str) -> None:
    """Memory does not grow with the table: 20 MB of texts pass through."""
    table = Table("long", MetaData(), Column("id", Integer, primary_key=True), Column("content", Text))
    table.create(sqlite_database.engine)
    with sqlite_database.engine.begin() as connection:
        for start in range(0, 2000, 100):
            texts = [
                {"id": i, "content": f"{i % 1000} " + chr(0x4E00 + i) * 10_000}
                for i in range(start, start + 100)
            ]
            connection.execute(insert(table), texts)
    dedup = Deduplicator(sqlite_database.engine, "long", {"content": 1}, preset="strict")
    dedup.upgrade()
    dedup.scan()
    tracemalloc.start()
    try:
        count = sum(1 for _ in export_table(dedup, order=cast("ExportOrder", order)).rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2000
    assert peak < 12_000_000


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_infinite_number_is_a_text_in_json(odd: Database) -> None:
    with odd.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE odd SET share = 9e999 WHERE id = 3")
        connection.exec_driver_sql("UPDATE odd SET share = -9e999 WHERE id = 2")
    printed = succeed("export", "odd", "--url", odd.url, "--format", "json", "--order", "key").stdout
    found = json.loads(printed, parse_constant=pytest.fail)
    assert [row["share"] for row in found] == [0.25, "-Infinity", "Infinity"]


def test_no_number_that_json_does_not_know_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"threshold": float("nan"), "grid": [1.5, (float("inf"), None)]})
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found == {"threshold": "NaN", "grid": [1.5, ["Infinity", None]]}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_date_among_moments_is_midnight_in_parquet(odd: Database) -> None:
    with odd.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE odd SET moment = '2024-01-02' WHERE id = 3")
        connection.exec_driver_sql("UPDATE odd SET day = '2024-01-02 00:00:00' WHERE id = 3")
    succeed("export", "odd", "--url", odd.url, "--output", "odd.parquet")
    table = pyarrow.parquet.read_table("odd.parquet").to_pydict()
    assert table["moment"] == [datetime(2024, 2, 29, 8, 30), None, datetime(2024, 1, 2)]
    assert table["day"] == [date(2024, 2, 29), None, date(2024, 1, 2)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_no_time_of_a_moment_among_dates_is_lost_in_parquet(odd: Database) -> None:
    with odd.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE odd SET day = '2024-01-02 10:11:12' WHERE id = 3")
    assert "'day'" in str(fail("export", "odd", "--url", odd.url, "--output", "odd.parquet"))


@pytest.mark.parametrize("order", ["group", "key"])
def test_rows_without_a_key_are_counted(sqlite_database: Database, order: str) -> None:
    with sqlite_database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE letters (number TEXT PRIMARY KEY, content TEXT)")
        connection.exec_driver_sql(f"INSERT INTO letters VALUES ('a', '{BLANK}'), (NULL, '{BLANK}')")
    dedup = Deduplicator(sqlite_database.engine, "letters", {"content": 1})
    dedup.upgrade()
    dedup.scan()
    result = succeed("export", "letters", "--url", sqlite_database.url, "--order", order)
    assert [r["number"] for r in records(result.stdout)] == ["a"]
    assert result.stderr == "1 row has no key (NULL), left out\n"
