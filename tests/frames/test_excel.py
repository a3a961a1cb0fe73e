"""What a cell of a workbook holds."""

import gc
import re
import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook
from xlsxwriter import Workbook

from db_dedup.errors import ConfigError
from db_dedup.frames.excel_file import read_excel, write_excel


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (999_999_999_999_999, 999_999_999_999_999),
        (110101199001011231, "110101199001011231"),
        (-(2**53) - 1, str(-(2**53) - 1)),
        (10**18, 10**18),
        (Decimal("1.50000000000000000000"), 1.5),
        (Decimal("0.1234567890123456"), "0.1234567890123456"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1E+400"), "1E+400"),
        (True, True),
        (date(1850, 1, 2), "1850-01-02"),
    ],
)
def test_no_digit_is_lost(value: Any, expected: Any, tmp_path: Path) -> None:
    write_excel(tmp_path / "found.xlsx", ["number"], [[value]])
    read = CalamineWorkbook.from_path(tmp_path / "found.xlsx").get_sheet_by_index(0).to_python()
    assert read[1] == [expected]


def test_whole_numbers_are_read_without_decimals(tmp_path: Path) -> None:
    """Cells hold 64-bit floats only."""
    path = tmp_path / "found.xlsx"
    write_excel(path, [2019, "mixed"], [[13800138001, 2.5], [-3, "x"], [1e16, True], [0, 7]])  # type: ignore[list-item]
    sheet = read_excel(path)
    assert sheet.names == ("2019", "mixed")
    assert list(map(repr, sheet.rows)) == ["(13800138001, 2.5)", "(-3, 'x')", "(1e+16, True)", "(0, 7)"]


def test_a_hidden_sheet_is_not_taken_for_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "forms.xlsx"
    with Workbook(path) as workbook:
        for name in ("lists", "petitions"):
            workbook.add_worksheet(name).write_column(0, 0, ["text", f"of {name}"])
        workbook.get_worksheet_by_name("petitions").activate()
        workbook.get_worksheet_by_name("lists").hide()
    assert read_excel(path).rows == [("of petitions",)]
    assert read_excel(path, "lists").rows == [("of lists",)]


def test_days_times_and_durations_are_shown_as_what_they_are(tmp_path: Path) -> None:
    """A format with a day shows the day 0 of the year 1900 before a time."""
    values = [date(2024, 2, 28), time(8, 30), datetime(2024, 2, 28, 8, 30), timedelta(hours=26, minutes=5)]
    write_excel(tmp_path / "found.xlsx", ["a", "b", "c", "d", "e"], [[*values, timedelta(hours=-1)]])
    with zipfile.ZipFile(tmp_path / "found.xlsx") as found:
        styles = found.read("xl/styles.xml").decode()
        cells = re.findall(r'<c r="[A-E]2" s="(\d+)"', found.read("xl/worksheets/sheet1.xml").decode())
    formats = dict(re.findall(r'<numFmt numFmtId="(\d+)" formatCode="([^"]+)"', styles))
    used = re.findall(r'<xf numFmtId="(\d+)"', styles.split("<cellXfs")[1])
    assert [formats[used[int(style)]] for style in cells] == [
        "yyyy-mm-dd",
        "hh:mm:ss",
        "yyyy-mm-dd hh:mm:ss",
        "[h]:mm:ss",
    ]
    read = CalamineWorkbook.from_path(tmp_path / "found.xlsx").get_sheet_by_index(0).to_python()
    assert read[1] == [*values, "-1 day, 23:00:00"], "a cell shows no negative duration"


def test_numbers_that_cells_round_are_named(tmp_path: Path) -> None:
    path = tmp_path / "persons.xlsx"
    with Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["card", "phone", "text"])
        sheet.write_row(1, 0, [110101199001011231, 13800138001, "110101199001011231"])
    (note,) = read_excel(path).notes
    assert str(note).startswith("warning: numbers of more than 15 digits in card: cells round them")


def test_other_sheets_are_named_if_the_first_one_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "cover.xlsx"
    with Workbook(str(path)) as workbook:
        workbook.add_worksheet("cover")
        workbook.add_worksheet("letters").write_row(0, 0, ["title"])
    with pytest.raises(ConfigError, match="sheet cover is empty: name another one by --sheet, from letters"):
        read_excel(path)
    with pytest.raises(
        ConfigError, match=r"cover\.xlsx: sheet cover is empty: its first row should name the columns$"
    ):
        read_excel(path, "cover")
    assert read_excel(path, "letters").names == ("title",)


LEAVES_A_FILE_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""XlsxWriter does, when it fails: the test should close it, not the next one."""


@LEAVES_A_FILE_OPEN
def test_a_workbook_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_excel(tmp_path / "gone" / "found.xlsx", ["number"], [[1]])
    gc.collect()


@LEAVES_A_FILE_OPEN
def test_a_workbook_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1_000)
    with pytest.raises(ConfigError, match="too large for a workbook"):
        write_excel(tmp_path / "found.xlsx", ["number"], [[number] for number in range(10_000)])
    gc.collect()
