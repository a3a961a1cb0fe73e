"""How data comes out: CSV and JSON for programs, tables and spreadsheets for people. All on stdout.

A terminal, and what people read, has the encoding of the system, in which other characters are replaced. Data
in a file or a pipe are UTF-8 everywhere.
"""

import csv
import errno
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import StrEnum
from itertools import chain
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from db_dedup.cli.shared.terminal import say
from db_dedup.errors import ConfigError
from db_dedup.present.formulas import without_formula
from db_dedup.present.visible import visible
from db_dedup.records.pages import take_lists
from db_dedup.replaced_file import not_written, replaced
from db_dedup.translation import Phrase, tr

_WIDE_ENOUGH: Final = 100_000
"""Characters; row keys have at most 700."""
_ROWS_A_PART: Final = 1_000
_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str)
_json_string: Final = json.encoder.encode_basestring

Columns = Sequence[Sequence[Any]]
"""Some rows, column by column."""


class Format(StrEnum):
    """How data comes out."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    SPREADSHEET = "spreadsheet"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        envvar="DB_DEDUP_FORMAT",
        help="How the data comes out; spreadsheet is CSV to be opened in one, with formulas made harmless.",
    ),
]


def data_output() -> TextIO:
    """Make stdout ready for data and return it.

    In a file or a pipe they are UTF-8, line ends as they are written, whatever the system is set to; a lone
    surrogate becomes its escape, which JSON reads back.
    """
    stdout = sys.stdout
    if isinstance(stdout, io.TextIOWrapper) and not stdout.isatty():
        stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    return stdout


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> None:
    """Print rows as they come; only the table waits for all of them."""
    parts = take_lists(rows, lambda: _ROWS_A_PART)
    match form:
        case Format.CSV:
            _print_csv(columns, parts)
        case Format.SPREADSHEET:
            stdout = data_output()
            stdout.write("\ufeff")
            writer = csv.writer(stdout)
            writer.writerows(map(without_formula, row) for row in chain([columns], rows))
        case Format.JSON:
            _print_json_rows(columns, (list(zip(*part, strict=True)) for part in parts))
        case Format.TABLE:
            print_table(columns, rows)


def print_columns(columns: Sequence[str], parts: Iterable[Columns], form: Format) -> None:
    """Print rows that come many at a time, column by column, as `print_rows` prints them one by one."""
    match form:
        case Format.CSV:
            _print_csv(columns, (list(zip(*part, strict=True)) for part in parts))
        case Format.JSON:
            _print_json_rows(columns, parts)
        case _:
            print_rows(columns, chain.from_iterable(zip(*part, strict=True) for part in parts), form)


def print_json(data: object) -> None:
    """Print one JSON document, indented and in the characters it is made of."""
    text = json.dumps(_finite(data), ensure_ascii=False, allow_nan=False, indent=2, default=str)
    data_output().write(text + "\n")


def check_page(file: Path | None, replace: bool) -> None:
    """Refuse a page that could not be written, before the work whose result it shows.

    Args:
        file: the page.
        replace: whether the file may be there.

    Raises:
        ConfigError: there is no such folder, or the file is there.
    """
    if file is None:
        return
    if file.is_file() and not replace:
        raise ConfigError("{path} is there already: --force replaces it", path=file)
    if not file.parent.is_dir():
        raise not_written(file, FileNotFoundError(errno.ENOENT, ""))


def write_page(file: Path, page: str) -> None:
    """Write a page of HTML and say so.

    Raises:
        ConfigError: the file cannot be written; then a former page is still there.
    """
    with replaced(file) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    say("wrote {path}", path=file)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, may_lack: int = 0
) -> bool:
    """Print a table for people. If stdout is no terminal, COLUMNS is its width; without it nothing is folded.

    Args:
        columns: their names.
        rows: a value for each column.
        title: printed before the table.
        may_lack: so many of the last columns are left out where there is no room for all.

    Returns:
        Whether all columns were printed.
    """
    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = _WIDE_ENOUGH
    if title is not None:
        console.print(Text(visible(tr(title))), soft_wrap=True)
    rows = list(rows)
    whole = _table(columns, rows)
    unfolded = console.options.update(max_width=_WIDE_ENOUGH)
    if may_lack and console.measure(whole, options=unfolded).maximum > console.width:
        kept = len(columns) - may_lack
        console.print(_table(columns[:kept], [row[:kept] for row in rows]))
        return False
    console.print(whole)
    return True


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    table = Table()
    for column in columns:
        # Names of views and files stay as they are.
        title = tr(column) if isinstance(column, Phrase) else column
        table.add_column(Text(visible(title)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _print_csv(columns: Sequence[str], parts: Iterable[list[Sequence[Any]]]) -> None:
    """Print lines that end in a line feed, a part at a time."""
    stdout = data_output()
    for part in chain([[columns]], parts):
        stdout.write(_csv_lines(part))


def _csv_lines(rows: list[Sequence[Any]]) -> str:
    # The writer quotes a lone carriage return only where its own lines end in one.
    written = io.StringIO(newline="")
    csv.writer(written).writerows(rows)
    text = written.getvalue()
    if text.count("\r") == len(rows):
        return text.replace("\r\n", "\n")
    if len(rows) == 1:
        return text.removesuffix("\r\n") + "\n"
    return "".join(_csv_lines([row]) for row in rows)


def _print_json_rows(columns: Sequence[str], parts: Iterable[Columns]) -> None:
    """Print a JSON array, a row a line, without holding all rows."""
    stdout, separator = data_output(), "["
    line = "{" + ", ".join(f"{_JSON.encode(name).replace('%', '%%')}: %s" for name in columns) + "}"
    for part in parts:
        lines = ",\n".join(map(line.__mod__, zip(*map(_json_values, part), strict=True)))
        if lines:
            stdout.write(f"{separator}\n{lines}")
            separator = ","
    stdout.write("[]\n" if separator == "[" else "\n]\n")


def _json_values(values: Sequence[Any]) -> Iterable[str]:
    """Return each value as JSON; a column of texts or of numbers needs no call of Python for each."""
    types = set(map(type, values))
    if types == {str}:
        return map(_json_string, values)
    if types == {int} or (types == {float} and all(map(isfinite, values))):
        return map(repr, values)
    if types <= {str, bool, NoneType}:
        texts = {value: _JSON.encode(value) for value in set(values)}
        return map(texts.__getitem__, values)
    return map(_JSON.encode, map(_finite, values))


def _finite(value: Any) -> Any:
    """Return the value with "NaN", "Infinity" and "-Infinity" for the floats that JSON does not know."""
    match value:
        case float() if not isfinite(value):
            return str(Decimal(value))
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list() | tuple():
            return list(map(_finite, value))
    return value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return tr("yes") if value else ""
    return (
        f"{value:.3f}"
        if isinstance(value, float)
        else visible(tr(value) if isinstance(value, Phrase) else str(value))
    )
