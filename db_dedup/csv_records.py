"""The records of a CSV text, each with its line."""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from db_dedup.errors import ConfigError

_SEPARATORS: Final = (",", "\t", ";", "|")


def csv_records(text: str, path: Path, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the number of the line on which it begins; a blank line is an empty record.

    Args:
        text: the content of the file.
        path: the file, for errors.
        separator: between the values.

    Raises:
        ConfigError: It is not well-formed CSV. The line is that on which the record begins, because a
            quotation mark that is not closed takes all lines to the end of the file into one record.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # texts may be longer than the default of 131,072
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for record in reader:
            yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(
            "{path}, line {line}: {error}: put a value that holds a quotation mark in quotation marks, and "
            "double the mark",
            path=path,
            line=line,
            error=error,
        ) from None


def detect_separator(text: str) -> str:
    """Return which of comma, tab, semicolon and bar divides the header into the most names."""
    return max(_SEPARATORS, key=lambda separator: len(_header(text, separator)))


def _header(text: str, separator: str) -> list[str]:
    try:
        records = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        return next(filter(None, records), [])
    except csv.Error:
        return []
