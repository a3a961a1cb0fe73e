"""`file`: from a file to its groups, and to a file with them."""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import sqlite3
import sys
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet
import pytest
import xlsxwriter
from python_calamine import CalamineWorkbook

from db_dedup.errors import ConfigError
from db_dedup.frames import files
from db_dedup.frames.excel_file import write_excel
from db_dedup.frames.files import write_file
from db_dedup.frames.groups import RowGroups
from db_dedup.frames.parquet_file import read_parquet, write_parquet
from db_dedup.frames.sheet import Sheet
from db_dedup.sample import Sample
from tests.cli.conftest import fail, run, succeed
from tests.forms import in_form, texts

NAMES = ["编号", "title", "content", "upvotes"]


@pytest.fixture
def rows(sample: Sample) -> list[list[Any]]:
    return [[f"A{p.id:06}", p.title, p.content, p.id % 7] for p in sample.petitions]


@pytest.fixture
def letters(rows: list[list[Any]]) -> Path:
    path = Path("letters.csv")
    with path.open("w", encoding="gb18030", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])
    return path


def written(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_one_command_on_a_file(letters: Path, rows: list[list[Any]]) -> None:
    before = letters.read_bytes()
    result = succeed("file", str(letters), "--out", "found.csv")
    assert "gb18030" in result.stderr
    assert "compared: title, content" in result.stderr
    assert "left out: upvotes (a number)" in result.stderr
    assert result.stdout.count("(representative)") >= 10
    header, *lines = written(Path("found.csv"))
    assert header == [*NAMES, "duplicate_group", "group_size", "is_representative"]
    assert [line[:3] for line in lines] == [row[:3] for row in rows]
    groups = [int(line[4]) for line in lines]
    assert [groups.count(group) for group in groups] == [int(line[5]) for line in lines]
    assert [str(group == row) for row, group in enumerate(groups, 2)] == [line[6] for line in lines]
    assert letters.read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["found.csv", "letters.csv"]


def test_the_same_groups_as_json_and_in_every_kind_of_file(letters: Path, rows: list[list[Any]]) -> None:
    write_excel(Path("letters.xlsx"), NAMES, rows)
    write_parquet(Path("letters.parquet"), NAMES, rows)
    found = {
        path: succeed("file", path, "--json").json()
        for path in (letters.name, "letters.xlsx", "letters.parquet")
    }
    of_csv = found["letters.csv"]
    assert of_csv["compared"] == ["title", "content"]
    assert of_csv["report"]["rows"] == len(rows)
    assert of_csv["groups"] == found["letters.xlsx"]["groups"]
    # Parquet has no header line: its first row is number 1.
    shifted = [[row - 1 for row in group["rows"]] for group in of_csv["groups"]]
    assert shifted == [group["rows"] for group in found["letters.parquet"]["groups"]]
    assert [len(rows) for rows in shifted] == sorted(map(len, shifted), reverse=True)


def test_answers_are_written_to_workbooks_and_parquet(letters: Path, rows: list[list[Any]]) -> None:
    write_parquet(Path("letters.parquet"), NAMES, rows)
    for out in ("found.csv", "found.xlsx", "found.parquet"):
        succeed("file", str(letters), "--out", out, "--limit", "0")
    expected = [[int(cell) for cell in line[4:6]] for line in written(Path("found.csv"))[1:]]
    sheet = CalamineWorkbook.from_path("found.xlsx").get_sheet_by_index(0).to_python()
    assert [line[4:6] for line in sheet[1:]] == expected
    assert [line[1] for line in sheet[1:]] == [row[1] for row in rows]
    table = pyarrow.parquet.read_table("found.parquet").to_pydict()
    assert list(zip(table["duplicate_group"], table["group_size"], strict=True)) == [
        tuple(e) for e in expected
    ]
    succeed("file", "letters.parquet", "--out", "typed.parquet", "--limit", "0")
    typed = pyarrow.parquet.read_table("typed.parquet")
    assert typed.schema.field("upvotes").type == pyarrow.int64()


@pytest.mark.parametrize(
    ("out", "module", "extra"),
    [("found.xlsx", "xlsxwriter", "excel"), ("found.parquet", "pyarrow", "parquet")],
)
def test_a_missing_extra_is_named_before_the_work(
    out: str, module: str, extra: str, letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    result = run("file", str(letters), "--out", out)
    assert f'pip install "db-dedup[{extra}]"' in str(result.error)
    assert result.stderr == ""  # nothing was read


def test_a_database_may_be_kept(letters: Path, rows: list[list[Any]]) -> None:
    told = succeed("file", str(letters), "--database", "kept.db", "--limit", "0").stderr
    assert "wrote kept.db: the table rows and the view dedup_duplicates_of_rows\n" in told
    connection = sqlite3.connect("kept.db")
    assert connection.execute("SELECT count(*) FROM rows").fetchone() == (len(rows),)
    assert connection.execute("SELECT count(*) FROM dedup_duplicates_of_rows").fetchone()[0] > 0
    connection.close()
    assert "there already" in str(fail("file", str(letters), "--database", "kept.db"))


def test_no_database_is_left_by_a_command_that_failed(letters: Path) -> None:
    command = ("file", str(letters), "--database", "kept.db", "--limit", "0")
    told = str(fail(*command, "--within", "titel"))
    assert "'titel': did you mean title" in told
    assert "unknown column" in str(fail(*command, "--within", "nothing"))
    assert "row" not in str(fail(*command, "--within", "nothing")).split()
    assert not Path("kept.db").exists()
    succeed(*command)


def test_a_database_with_an_answer_stays_whatever_comes_after(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a reader of the output that ends, as head does."""

    def find_the_disk_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_csv", find_the_disk_full)
    told = fail("file", str(letters), "--database", "kept.db", "--limit", "0", "--out", "found.csv")
    assert str(told) == "cannot write found.csv: No space left on device"
    connection = sqlite3.connect("kept.db")
    assert connection.execute("SELECT count(*) FROM dedup_duplicates_of_rows").fetchone()[0] > 0
    connection.close()


def test_columns_and_rule_can_be_named(letters: Path) -> None:
    strict = succeed("file", str(letters), "--column", "content", "--preset", "strict", "--json").json()
    assert strict["compared"] == ["content"]
    loose = succeed("file", str(letters), "--column", "content", "--json").json()
    assert strict["report"]["pairs"] < loose["report"]["pairs"]
    apart = succeed("file", str(letters), "--column", "content", "--within", "编号", "--json").json()
    assert apart["groups"] == []
    alike = succeed("file", str(letters), "--column", "content", "--threshold", "0.95", "--json").json()
    assert 0 < alike["report"]["pairs"] < loose["report"]["pairs"]


def test_what_all_rows_share_is_warned_of(rows: list[list[Any]]) -> None:
    form = (
        "【工单编号】【来电类别】投诉【诉求内容】市民来电反映以下问题，请承办单位在五个工作日内核实处理并回复市民，谢谢。"
        * 9
    )
    write_parquet(Path("forms.parquet"), ["text"], [[form + row[1]] for row in rows])
    assert "warning: one group holds" in succeed("file", "forms.parquet").stderr


def test_a_form_around_too_few_rows_for_frames_is_warned_of() -> None:
    bodies = texts(250)
    for name, count, warns in (("few", 100, True), ("enough", 250, False)):
        write_parquet(Path(f"{name}.parquet"), ["text"], [[text] for text in in_form(bodies[:count])])
        said = succeed("file", f"{name}.parquet").stderr
        assert ("warning: column text: in 100% of the sampled texts" in said) is warns
    strict = succeed("file", "few.parquet", "--preset", "strict").stderr
    assert "sampled texts" not in strict


def test_a_workbook_that_begins_lower_down_keeps_its_row_numbers() -> None:
    with xlsxwriter.Workbook("late.xlsx") as workbook:
        workbook.add_worksheet("leer")
        sheet = workbook.add_worksheet("Briefe")
        for number, line in enumerate(
            [["no", "text"], [1, "路灯坏了三个月没有人来修理"], [2, "路灯坏了三个月没有人来修理"]]
        ):
            sheet.write_row(4 + number, 2, line)
    found = succeed("file", "late.xlsx", "--sheet", "Briefe", "--json").json()
    assert found["groups"] == [{"group": 6, "size": 2, "rows": [6, 7]}]
    assert "it has leer, Briefe" in str(fail("file", "late.xlsx", "--sheet", "Blatt 1"))


def test_sheets_that_are_not_read_are_named() -> None:
    with xlsxwriter.Workbook("year.xlsx") as workbook:
        workbook.add_worksheet("说明").write(0, 0, "导出说明")
        for month in range(1, 13):
            workbook.add_worksheet(f"{month}月").write_column(0, 0, ["text", "路灯坏了三个月没有人来修理"])
    said = run("file", "year.xlsx").stderr
    assert "sheets that are not read: 1月, 2月, " in said
    assert "10月 and 2 more; --sheet reads one of them" in said
    assert "not read" not in succeed("file", "year.xlsx", "--sheet", "3月").stderr


@pytest.mark.parametrize("name", ["found.csv", "found.xlsx"])
def test_a_title_above_the_header_is_warned_of(name: str) -> None:
    lines = [["no", "text", "by", ""], *[[n, f"路灯坏了{n}个月没有人来修理", "电话", ""] for n in range(3)]]
    write: Any = write_lines if name.endswith(".csv") else write_sheet
    write(name, [["年度登记表", "", "", ""], *lines])
    said = succeed("file", name).stderr
    assert "warning: the first row names only 1 of the 3 columns that have values" in said
    numbered = [["", "text", "", ""], *[[n, f"路灯坏了{n}个月没有人来修理", "", ""] for n in range(3)]]
    for usual in (lines, numbered):
        write(name, usual)
        assert "the first row names" not in succeed("file", name).stderr


def write_lines(name: str, lines: list[list[Any]]) -> None:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)


def write_sheet(name: str, lines: list[list[Any]]) -> None:
    with xlsxwriter.Workbook(name) as workbook:
        sheet = workbook.add_worksheet()
        for number, line in enumerate(lines):
            sheet.write_row(number, 0, line)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["nothing.csv"], "there is no file"),
        (["letters.doc"], "ending that is not known"),
        (["letters.csv", "--column", "contents"], "content"),
        (["letters.csv", "--out", "found.doc"], "should end in"),
        (["letters.csv", "--out", "no/such/found.csv"], "no folder"),
        (["letters.csv", "--out", "letters.csv"], "is the file that is read"),
        (["letters.csv", "--out", "a" * 250 + ".csv"], "cannot write"),
        (["letters.csv", "--preset", "loose"], "unknown preset 'loose': there is balanced, strict, tweet"),
        (["letters.csv", "--preset", "strict", "--threshold", "0.9"], "threshold"),
        (["broken.xlsx"], "cannot be read as a workbook"),
        (["broken.parquet"], "save its rows as CSV"),
        (["damaged.parquet"], "cannot be read as Parquet"),
        (["numbers.csv"], "no column holds texts"),
    ],
)
def test_bad_input(letters: Path, arguments: list[str], fault: str) -> None:
    Path("letters.doc").write_bytes(letters.read_bytes())
    for name in ("broken.xlsx", "broken.parquet"):
        Path(name).write_bytes(b"no such thing")
    write_parquet(Path("damaged.parquet"), ["body"], [["路灯坏了三个月没有人来修理"], ["自来水停了"]])
    content = Path("damaged.parquet").read_bytes()
    Path("damaged.parquet").write_bytes(content[:4] + b"\xff" * 40 + content[44:])
    Path("numbers.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    assert fault in str(fail("file", *arguments))


def test_a_folder_is_no_file_to_write(letters: Path) -> None:
    Path("found.csv").mkdir()
    told = run("file", str(letters), "--out", "found.csv")
    assert told.exit_code == 2
    assert "directory" in told.stderr


def test_a_file_with_somebodys_notes_is_replaced_by_force_alone(letters: Path) -> None:
    Path("found.csv").write_bytes(b"notes")
    error = fail("file", str(letters), "--out", "found.csv", "--limit", "0")
    assert str(error) == "found.csv is there already: --force replaces it"
    assert Path("found.csv").read_bytes() == b"notes"
    succeed("file", str(letters), "--out", "found.csv", "--limit", "0", "--force")
    assert len(written(Path("found.csv"))) > 1
    assert "is the file that is read" in str(fail("file", str(letters), "--out", "letters.csv", "--force"))


@pytest.mark.parametrize("name", ["found.csv", "found.parquet"])
def test_a_file_that_can_no_more_be_written_is_told(name: str) -> None:
    sheet = Sheet(("body",), [("a",)], 2, "letters")
    with pytest.raises(ConfigError, match=f"cannot write gone/{name}: No such file"):
        write_file(Path("gone") / name, sheet, RowGroups.of_members(1, []))


def test_dates_among_moments_and_texts_are_written_as_they_are(tmp_path: Path) -> None:
    written: list[list[Any]] = [[date(2024, 1, 1)], [datetime(2024, 1, 2, 3, 4)], ["unknown"]]
    write_parquet(tmp_path / "mixed.parquet", ["at"], written)
    found = pyarrow.parquet.read_table(tmp_path / "mixed.parquet").to_pydict()
    assert found == {"at": ["2024-01-01", "2024-01-02 03:04:00", "unknown"]}


def test_too_little_memory_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_table(_: object) -> None:
        raise pyarrow.ArrowMemoryError("malloc failed")

    monkeypatch.setattr(pyarrow.parquet, "read_table", read_table)
    with pytest.raises(MemoryError):
        read_parquet(tmp_path / "sound.parquet")


def test_the_seconds_of_the_parts_add_up_to_those_of_the_command(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file takes longer to be read than to be scanned."""
    monkeypatch.setattr("db_dedup.cli.file.time", SimpleNamespace(monotonic=iter([0.0, 1000.0]).__next__))
    said = succeed("file", str(letters), "--limit", "0").stderr
    parts = re.search(r"of these (\S+) s to .*, (\S+) s to .*, (\S+) s to write, (\S+) s for the rest", said)
    assert "rows in 1000.0 s" in said
    assert parts is not None
    assert sum(map(float, parts.groups())) == pytest.approx(1000, abs=0.5)  # each is rounded
    monkeypatch.setattr("db_dedup.cli.file.time", SimpleNamespace(monotonic=iter([0.0, 1000.0]).__next__))
    assert succeed("file", str(letters), "--json").json()["report"]["seconds"] == 1000


def test_a_file_of_a_header_alone_has_no_groups() -> None:
    Path("empty.csv").write_text("a,b\n", encoding="utf-8")
    assert succeed("file", "empty.csv", "--column", "a", "--json").json()["groups"] == []


def test_any_name_of_a_database_is_kept(letters: Path) -> None:
    succeed("file", str(letters), "--database", "a?b=%41.db", "--limit", "0")
    assert sorted(path.name for path in Path().iterdir()) == ["a?b=%41.db", "letters.csv"]


def test_a_text_too_long_for_a_cell_is_not_cut(letters: Path) -> None:
    long = json.dumps(["路灯坏了三个月没有人来修理" * 3000], ensure_ascii=False)
    write_parquet(Path("long.parquet"), ["text"], [[long]])
    Path("found.xlsx").write_bytes(b"of yesterday")
    error = fail("file", "long.parquet", "--column", "text", "--out", "found.xlsx", "--force", "--limit", "0")
    assert "row 2 has a text of 39,004 characters" in str(error)
    assert "compared: text" not in str(error)  # nothing was searched before
    assert Path("found.xlsx").read_bytes() == b"of yesterday"
    assert letters.exists()


def test_a_file_that_cannot_be_written_leaves_the_former_one(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_the_disk(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise ConfigError("no space left")

    monkeypatch.setattr(files, "write_csv", fill_the_disk)
    Path("found.csv").write_bytes(b"of yesterday")
    fail("file", str(letters), "--out", "found.csv", "--force", "--limit", "0")
    assert Path("found.csv").read_bytes() == b"of yesterday"
    assert sorted(path.name for path in Path().glob("*found*")) == ["found.csv"]


def test_parquet_values_outside_pythons_range_are_texts() -> None:
    far = pyarrow.table(
        {
            "body": ["小区门口的路灯坏了三个月"] * 2,
            "day": pyarrow.array([2_932_897, 0], pyarrow.int32()).cast(pyarrow.date32()),
            "moment": pyarrow.array([2**63 - 1, 0], pyarrow.timestamp("us")),
            "fine": pyarrow.array([1_001, 0], pyarrow.timestamp("ns")),
            "length": pyarrow.array([2**63 - 1, 0], pyarrow.duration("ns")),
        }
    )
    pyarrow.parquet.write_table(far, "far.parquet")
    sheet = read_parquet(Path("far.parquet"))
    assert sheet.rows[0][1] == "10000-01-01"
    assert all(isinstance(value, str) for value in sheet.rows[0][1:3])
    assert len(sheet.rows) == 2
    assert '"rows": [' in succeed("file", "far.parquet", "--column", "body", "--json").stdout


def test_cells_of_a_workbook_are_written_as_a_spreadsheet_shows_them() -> None:
    moments = [datetime(2024, 3, 1), datetime(2024, 3, 2, 10, 30), None]
    with xlsxwriter.Workbook("typed.xlsx", {"default_date_format": "yyyy-mm-dd hh:mm"}) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["phone", "received", "code", "body"])
        for number, moment in enumerate(moments):
            cells = [13800138001 + number, moment, ("x", 1001, 2.5)[number], "小区门口的路灯坏了三个月"]
            for place, cell in enumerate(cells):
                sheet.write(1 + number, place, cell)
    for out in ("found.csv", "found.parquet"):
        succeed("file", "typed.xlsx", "--column", "body", "--out", out, "--limit", "0")
    assert [line[:3] for line in written(Path("found.csv"))[1:]] == [
        ["13800138001", "2024-03-01", "x"],
        ["13800138002", "2024-03-02 10:30:00", "1001"],
        ["13800138003", "", "2.5"],
    ]
    table = pyarrow.parquet.read_table("found.parquet").to_pydict()
    assert table["received"] == moments
    assert table["phone"] == [13800138001, 13800138002, 13800138003]
    assert table["code"] == ["x", "1001", "2.5"]
