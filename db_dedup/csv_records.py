"""The records of a CSV text, each with its line."""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

from db_dedup.errors import ConfigError


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
