"""CSV files of any usual encoding and separator."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from db_dedup.csv_records import csv_records, detect_separator
from db_dedup.encodings import detect_encoding
from db_dedup.errors import ConfigError
from db_dedup.frames.sheet import Sheet, sheet_of
from db_dedup.present.formulas import without_formula
from db_dedup.translation import Phrase

_NAMES: Final = {
    ",": Phrase("commas"),
    "\t": Phrase("tabs"),
    ";": Phrase("semicolons"),
    "|": Phrase("bars"),
}

_OTHER_FILES: Final = {
    b"PK\x03\x04": Phrase("a workbook or another ZIP archive"),
    b"\xd0\xcf\x11\xe0": Phrase("an old workbook (.xls) or another file of an office program"),
    b"\x1f\x8b": Phrase("a file compressed by gzip"),
}
"""What users rename to .csv, by the bytes with which it begins."""


def read_csv(path: Path, encoding: str | None = None) -> Sheet:
    """Read a CSV file; its encoding and its separator are detected.

    Args:
        path: the file.
        encoding: by Python's name; None: detect it.

    Raises:
        ConfigError: The file is no text in this encoding, or not well-formed CSV, or empty.
    """
    content = path.read_bytes()
    for beginning, kind in _OTHER_FILES.items():
        if content.startswith(beginning):
            raise ConfigError(
                "{path} is not a CSV file, it seems to be {kind}: unpack it, or give it the ending of its "
                "kind",
                path=path,
                kind=kind,
            )
    used = encoding or detect_encoding(content)
    if used is None:
        raise ConfigError("the encoding of {path} is not clear: name it, e.g. --encoding gb18030", path=path)
    try:
        text = content.decode(used)
    except (UnicodeError, LookupError) as error:
        raise ConfigError(
            "{path} is no text in the encoding {encoding!r}: {reason}; name another one, e.g. --encoding "
            "gb18030, or save the file as UTF-8 in an editor if only some characters are damaged",
            path=path,
            encoding=used,
            reason=_reason(error),
        ) from None
    separator = detect_separator(text)
    description = Phrase(
        "{name}: CSV, {used}, separated by {separator}",
        name=path.name,
        used=used,
        separator=_NAMES[separator],
    )
    lines = [record for _, record in csv_records(text, path, separator)]
    while lines and not lines[-1]:
        del lines[-1]
    if not lines:
        raise ConfigError("{path} is empty: its first line should name the columns", path=path)
    header = next((place for place, line in enumerate(lines) if line), 0)
    return sheet_of(lines[header:], header + 2, description)


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file that spreadsheets open as it is: UTF-8 with its mark, formulas made harmless."""
    with path.open("w", encoding="utf-8-sig", newline="", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(map(without_formula, names))
        writer.writerows(map(without_formula, row) for row in rows)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start].decode(error.encoding, "ignore")
        return Phrase("line {line:,} does not fit", line=before.count("\n") + 1)
    return Phrase("Python knows no such encoding")
