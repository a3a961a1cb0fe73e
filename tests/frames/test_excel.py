"""What a cell of a workbook holds."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from python_calamine import CalamineWorkbook

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
