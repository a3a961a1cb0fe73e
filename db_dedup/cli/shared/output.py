"""How data comes out: CSV and JSON for programs, tables and spreadsheets for people. All on stdout.

A terminal, and what people read, has the encoding of the system, in which other characters are replaced. Data
in a file or a pipe are UTF-8 everywhere.
"""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any, Final, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from db_dedup.present.formulas import without_formula
from db_dedup.present.visible import visible

_WIDE_ENOUGH: Final = 100_000
"""Characters; row keys have at most 700."""


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
    match form:
        case Format.CSV:
            writer = csv.writer(_Lines(data_output()))
            writer.writerow(columns)
            writer.writerows(rows)
        case Format.SPREADSHEET:
            stdout = data_output()
            stdout.write("\ufeff")
            writer = csv.writer(stdout)
            writer.writerows(map(without_formula, row) for row in chain([columns], rows))
        case Format.JSON:
            _print_json_rows(columns, rows)
        case Format.TABLE:
            print_table(columns, rows)


def print_json(data: object) -> None:
    """One JSON document, readable and in the characters it is made of."""
    data_output().write(json.dumps(data, ensure_ascii=False, indent=2, default=str) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people. Where stdout is no terminal, COLUMNS is its width; without it nothing is folded."""
    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = _WIDE_ENOUGH
    table = Table()
    for column in columns:
        table.add_column(Text(visible(column)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


class _Lines:
    """Lines that end in a line feed, by a CSV writer, which quotes a lone carriage return only where its own
    lines end in one."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def _print_json_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A JSON array, a row a line, without holding all rows."""
    stdout, separator = data_output(), "["
    for row in rows:
        line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=str)
        stdout.write(f"{separator}\n{line}")
        separator = ","
    stdout.write("[]\n" if separator == "[" else "\n]\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))
