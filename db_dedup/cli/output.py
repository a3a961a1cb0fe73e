"""How data comes out: CSV and JSON for programs, tables and spreadsheets for people. All on stdout."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from db_dedup.cli.terminal import visible
from db_dedup.formulas import without_formula

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


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> None:
    """Print rows as they come; only the table waits for all of them."""
    match form:
        case Format.CSV:
            writer = csv.writer(_Lines())
            writer.writerow(columns)
            writer.writerows(rows)
        case Format.SPREADSHEET:
            sys.stdout.write("\ufeff")
            for row in chain([columns], rows):
                csv.writer(sys.stdout).writerow(map(without_formula, row))
        case Format.JSON:
            _print_json_rows(columns, rows)
        case Format.TABLE:
            print_table(columns, rows)


def print_json(data: object) -> None:
    """One JSON document, readable and in the characters it is made of."""
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str))  # noqa: T201 - this is the output


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
    """stdout for a CSV writer, which quotes a lone carriage return only where its own lines end in one."""

    def write(self, line: str) -> None:
        sys.stdout.write(line.removesuffix("\r\n") + "\n")


def _print_json_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A JSON array, a row a line, without holding all rows."""
    separator = "["
    for row in rows:
        line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=str)
        sys.stdout.write(f"{separator}\n{line}")
        separator = ","
    sys.stdout.write("[]\n" if separator == "[" else "\n]\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))
