"""How data comes out: CSV and JSON for programs, tables for people. All on stdout."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE_ENOUGH: Final = 100_000
"""Characters; row keys have at most 700."""


class Format(StrEnum):
    """How data comes out."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", envvar="DB_DEDUP_FORMAT", help="How the data comes out.")
]


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: Format) -> None:
    """Print rows as they come; only the table waits for all of them."""
    match form:
        case Format.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
        case Format.JSON:
            _print_json_rows(columns, rows)
        case Format.TABLE:
            print_table(columns, rows)


def print_json(data: object) -> None:
    """One JSON document, readable and in the characters it is made of."""
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str))  # noqa: T201 - this is the output


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people; where stdout is no terminal nothing is cut or folded."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE_ENOUGH
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console.print(table)


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
    return f"{value:.3f}" if isinstance(value, float) else str(value)
