"""Workbooks: read from all usual formats, written as .xlsx."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final

from db_dedup.errors import ConfigError
from db_dedup.extras import load
from db_dedup.frames.sheet import Sheet, sheet_of
from db_dedup.temporary_files import temporary_folder, translate_temporary_errors
from db_dedup.translation import Phrase, joined

_EXTRA: Final = "excel"
_MOST_ROWS: Final = 1_048_575
"""The most rows below the header of one sheet."""
_FIRST_YEAR: Final = 1900
"""Cells cannot hold dates before this year."""
_MOST_LISTED: Final = 10
"""The most names of other sheets that a note lists."""
_LONGEST_CELL: Final = 32_767
"""Characters."""
_MOST_DIGITS: Final = 15
"""The most digits of a number. Cells are 64-bit floats, which change longer numbers, as of identity cards."""
_LARGEST_EXPONENT: Final = 300
_LARGEST_EXACT: Final = 2**53
"""A 64-bit float above this can be the nearest one to several whole numbers."""
_FORMATS: Final = {
    datetime: "yyyy-mm-dd hh:mm:ss",  # before date, of which it is a kind
    date: "yyyy-mm-dd",
    time: "hh:mm:ss",
    timedelta: "[h]:mm:ss",
}
"""How a cell shows each type: with a day in its format, a time would be shown as of the year 1900."""


def read_excel(path: Path, sheet: str | None = None) -> Sheet:
    """Read one sheet of a workbook (.xlsx, .xlsm, .xlsb, .xls, .ods).

    Args:
        path: the workbook.
        sheet: its name; None: the first one that is not hidden.

    Raises:
        ConfigError: The file is no workbook, is locked by a password, or has no such sheet, or the sheet is
            empty.
    """
    calamine = load("python_calamine", _EXTRA)
    try:
        with calamine.CalamineWorkbook.from_path(path) as workbook:
            name = sheet or _first_shown(workbook, calamine.SheetVisibleEnum.Visible)
            if name not in workbook.sheet_names:
                known = joined(", ", workbook.sheet_names)
                raise ConfigError(
                    "{path} has no sheet {sheet!r}; it has {known}", path=path, sheet=name, known=known
                )
            others = () if sheet else tuple(n for n in workbook.sheet_names if n != name)
            found = workbook.get_sheet_by_name(name)
            records = found.to_python(skip_empty_area=True)
            if others and not records:
                raise ConfigError(
                    "{path}: sheet {sheet} is empty: name another one by --sheet, from {others}",
                    path=path,
                    sheet=name,
                    others=joined(", ", others),
                )
            if not records:
                raise ConfigError(
                    "{path}: sheet {sheet} is empty: its first row should name the columns",
                    path=path,
                    sheet=name,
                )
            first_row = (found.start or (0, 0))[0] + 2
    except calamine.CalamineError as error:
        raise ConfigError(
            "{path} cannot be read as a workbook: {error}; open it in a spreadsheet program and save it as "
            ".xlsx, without a password",
            path=path,
            error=error,
        ) from None
    whole = [list(map(_whole, record)) for record in records]
    read = sheet_of(whole, first_row, Phrase("{name}: workbook, sheet {sheet}", name=path.name, sheet=name))
    return replace(read, notes=(*_not_read(others), *_rounded(read), *read.notes))


def _first_shown(workbook: Any, visible: Any) -> str:
    """Return the name of the first sheet that is shown: hidden ones hold lists for forms, or old data."""
    shown = (sheet.name for sheet in workbook.sheets_metadata if sheet.visible == visible)
    return str(next(shown, workbook.sheet_names[0]))


def _not_read(sheets: Sequence[str]) -> Iterator[str]:
    if sheets:
        listed, more = joined(", ", sheets[:_MOST_LISTED]), len(sheets) - _MOST_LISTED
        names = Phrase("{names} and {count:,} more", names=listed, count=more) if more > 0 else listed
        yield Phrase("sheets that are not read: {names}; --sheet reads one of them", names=names)


def _rounded(sheet: Sheet) -> Iterator[str]:
    """Yield a sentence that names the columns with whole numbers of which a cell has lost digits."""
    places = {
        place
        for row in sheet.rows
        for place, cell in enumerate(row)
        if isinstance(cell, float) and cell.is_integer()
    }
    if places:
        yield Phrase(
            "warning: numbers of more than 15 digits in {columns}: cells round them, so that their last "
            "digits may be wrong; store such numbers, for example of identity cards, as texts",
            columns=joined(", ", [sheet.names[place] for place in sorted(places)]),
        )


def _whole(cell: Any) -> Any:
    """Return a whole number as an integer. Cells hold numbers as floats, whose texts end in ".0"."""
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < _LARGEST_EXACT
    return int(cell) if is_whole else cell


def write_excel(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a workbook of one sheet; texts that look like formulas or links stay texts.

    So do whole and decimal numbers of more than 15 digits, and dates before 1900. Times lose their zone.

    The rows are taken one by one, and are not kept in memory.

    Raises:
        ConfigError: A workbook cannot hold so many rows, so long a text, or so much of it.
        TemporaryFolderError: The folder for temporary files is full.
        OSError: The file cannot be written.
    """
    xlsxwriter, exceptions = load("xlsxwriter", _EXTRA), load("xlsxwriter.exceptions", _EXTRA)
    options = {
        "constant_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
        "nan_inf_to_errors": True,
        "remove_timezone": True,
    }
    with temporary_folder() as folder:
        # XlsxWriter writes nothing but temporary files, so that all its errors are of their folder.
        made = folder / "made.xlsx"
        try:
            with translate_temporary_errors():
                workbook = xlsxwriter.Workbook(str(made), {**options, "tmpdir": str(folder)})
                formats = {kind: workbook.add_format({"num_format": how}) for kind, how in _FORMATS.items()}
                _fill(workbook.add_worksheet(), formats, names, rows)
                workbook.close()  # not after an error: the rows that were cut short would raise another one
        except exceptions.FileCreateError as error:
            with translate_temporary_errors():
                raise error.args[0] from None  # the OSError, which this exception is not
        except exceptions.FileSizeError:
            raise ConfigError("the rows are too large for a workbook: write .csv or .parquet") from None
        with made.open("rb") as source, path.open("wb") as target:
            copyfileobj(source, target)


def _fill(
    sheet: Any, formats: Mapping[Any, Any], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write names and rows; a cell of one of the types in `formats` gets the format of that type."""
    kinds = tuple(formats)
    for number, row in enumerate(chain([names], rows)):
        _check_number(number)
        for place, value in enumerate(row):
            if value is not None:
                cell = _cell(value, number)
                kind = next(filter(partial(isinstance, cell), kinds)) if isinstance(cell, kinds) else None
                sheet.write(number, place, cell, formats.get(kind))


def check_excel(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Refuse rows that `write_excel` could not write, before the scan, which may take minutes.

    Raises:
        ConfigError: as for `write_excel`.
    """
    for number, row in enumerate(chain([names], rows)):
        _check_number(number)
        for value in row:
            _cell(value, number)


def _check_number(number: int) -> None:
    if number > _MOST_ROWS:
        raise ConfigError(
            "a workbook holds no more than {most:,} rows: write .csv or .parquet", most=_MOST_ROWS
        )


def _cell(value: Any, number: int) -> Any:
    """Return what a cell can hold."""
    if not isinstance(value, bool | int | float | Decimal | str | date | time | timedelta):
        value = str(value)
    if isinstance(value, date) and value.year < _FIRST_YEAR:
        value = str(value)
    if isinstance(value, timedelta) and value < timedelta(0):
        value = str(value)  # a cell shows no negative duration
    if isinstance(value, int | Decimal) and not _keeps_digits(Decimal(value)):
        value = str(value)
    if isinstance(value, str) and len(value) > _LONGEST_CELL:
        raise ConfigError(
            "row {row} has a text of {length:,} characters, and a cell of a workbook holds "
            "{longest:,}: write .csv or .parquet",
            row=number + 1,
            length=len(value),
            longest=_LONGEST_CELL,
        )
    return value


def _keeps_digits(number: Decimal) -> bool:
    """Return whether a cell can hold a number with all its digits."""
    if not number.is_finite() or abs(number.adjusted()) > _LARGEST_EXPONENT:
        return False
    digits = "".join(map(str, number.as_tuple().digits))
    return len(digits.strip("0")) <= _MOST_DIGITS
