"""Read files as sheets and write them with their groups, in the format that the ending of the name tells."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from db_dedup.app.table_export import TableExport
from db_dedup.errors import ConfigError
from db_dedup.extras import load
from db_dedup.frames.csv_file import read_csv, write_csv
from db_dedup.frames.excel_file import check_excel, read_excel, write_excel
from db_dedup.frames.groups import RowGroups
from db_dedup.frames.parquet_file import read_parquet, write_parquet, write_parquet_parts
from db_dedup.frames.sheet import Sheet
from db_dedup.frames.sheet_duplicates import check_is_new
from db_dedup.replaced_file import not_written, replaced, unfinished_file

_CSV: Final = (".csv", ".tsv", ".txt")
_WORKBOOKS: Final = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_PARQUET: Final = (".parquet", ".pq")
_WRITTEN: Final = {".csv": None, ".xlsx": ("xlsxwriter", "excel"), ".parquet": ("pyarrow", "parquet")}
"""What can be written, with the library that does it and the extra that brings it."""


def read_file(path: Path, encoding: str | None = None, sheet: str | None = None) -> Sheet:
    """Read a file.

    Args:
        path: the file; the ending of its name tells the format.
        encoding: of a CSV file; None: detect it.
        sheet: of a workbook; None: the first one.

    Raises:
        ConfigError: The file does not exist, is a folder or a pipe, or is not of the format of its ending.
        MissingExtraError: The library that reads it is not installed.
    """
    if not path.exists():
        raise ConfigError("there is no file {path}", path=path)
    if not path.is_file():
        raise ConfigError("{path} is a folder or a pipe: save the rows in a file, and name it", path=path)
    match path.suffix.lower():
        case ending if ending in _CSV:
            return read_csv(path, encoding)
        case ending if ending in _WORKBOOKS:
            return read_excel(path, sheet)
        case ending if ending in _PARQUET:
            return read_parquet(path)
    known = ", ".join((*_CSV, *_WORKBOOKS, *_PARQUET))
    raise ConfigError("{path} has an ending that is not known; known are {known}", path=path, known=known)


def is_csv(path: Path) -> bool:
    """Return whether a file is read as CSV."""
    return path.suffix.lower() in _CSV


def is_workbook(path: Path) -> bool:
    """Return whether a file is read as a workbook."""
    return path.suffix.lower() in _WORKBOOKS


def check_output(path: Path, option: str, replace: bool, source: Path | None = None) -> None:
    """Refuse a file that could not be written at the end, before the work begins.

    Args:
        path: the file.
        option: the one that names it.
        replace: whether it may exist already.
        source: the file that is read, if one is; it is never replaced.

    Raises:
        ConfigError: The ending is not known, the file exists, or it cannot be written.
        MissingExtraError: The library that writes it is not installed.
    """
    _check_written(path, option)
    if source is not None and path.exists() and path.samefile(source):
        raise ConfigError("--out {path} is the file that is read: name another one", path=path)
    if path.exists() and not replace:
        raise ConfigError("{path} is there already: --force replaces it", path=path)


def check_database(path: Path, out: Path | None) -> None:
    """Refuse a new SQLite file that could not be made, before the work begins.

    Args:
        path: the file, of `--database`.
        out: the file of `--out`, if there is one.

    Raises:
        ConfigError: The file exists, is the one of `--out`, or cannot be written.
    """
    check_is_new(path)
    if out is not None and path.resolve() == out.resolve():
        raise ConfigError("--database and --out name the same file {path}: name two files", path=path)
    _check_place(path, "--database")


def write_export(path: Path, export: TableExport) -> None:
    """Write the rows of a table with their groups, as they come.

    An existing file is replaced when the new one is complete.

    Args:
        path: the file; its ending tells the format: .csv, .xlsx or .parquet.
        export: the rows.

    Raises:
        ConfigError: The kind of file cannot hold these rows, or the file cannot be written.
    """
    names = [column.name for column in export.columns]
    with replaced(path) as unfinished:
        match path.suffix.lower():
            case ".csv":
                write_csv(unfinished, names, export.rows)
            case ".xlsx":
                write_excel(unfinished, names, export.rows)
            case _:
                columns = [(column.name, column.family, column.type_name) for column in export.columns]
                write_parquet_parts(unfinished, columns, export.rows)


def _check_written(path: Path, option: str) -> None:
    if path.suffix.lower() not in _WRITTEN:
        raise ConfigError(
            "{option} {path} should end in {endings}", option=option, path=path, endings=", ".join(_WRITTEN)
        )
    _check_place(path, option)
    if needed := _WRITTEN[path.suffix.lower()]:
        load(*needed)


def _check_place(path: Path, option: str) -> None:
    if not path.parent.is_dir():
        raise ConfigError(
            "{option} {path}: there is no folder {folder}", option=option, path=path, folder=path.parent
        )
    try:
        unfinished_file(path).open("xb").close()
        unfinished_file(path).unlink()
    except FileExistsError:  # left by a process that was killed
        pass
    except OSError as error:
        raise not_written(path, error) from None


def check_rows(path: Path, sheet: Sheet) -> None:
    """Refuse rows that the file cannot hold, before the work begins.

    Args:
        path: the file.
        sheet: the rows.

    Raises:
        ConfigError: a text is too long, or there are too many rows.
    """
    if path.suffix.lower() == ".xlsx":
        check_excel(sheet.names, sheet.rows)


def write_file(path: Path, sheet: Sheet, groups: RowGroups) -> None:
    """Write the rows of a sheet, in their order, with the group, its size and whether they represent it.

    An existing file is replaced when the new one is complete.

    Args:
        path: the file; its ending tells the format: .csv, .xlsx or .parquet.
        sheet: the rows.
        groups: of these rows.

    Raises:
        ConfigError: The kind of file cannot hold these rows, or the file cannot be written.
    """
    names = (*sheet.names, *groups.column_names(sheet.names))
    added: Sequence[tuple[Any, ...]] = list(zip(*groups.columns(sheet.first_row), strict=True))
    rows = [(*row, *more) for row, more in zip(sheet.rows, added, strict=True)]
    with replaced(path) as unfinished:
        match path.suffix.lower():
            case ".csv":
                write_csv(unfinished, names, rows)
            case ".xlsx":
                write_excel(unfinished, names, rows)
            case _:
                write_parquet(unfinished, names, rows, sheet.table)
