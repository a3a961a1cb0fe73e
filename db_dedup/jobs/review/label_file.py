"""Read labelled pairs from a CSV file, such as another tool writes."""

import csv
import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from db_dedup.amounts import counted
from db_dedup.encodings import read_utf8
from db_dedup.errors import ConfigError
from db_dedup.records import PairLabel

YES: Final = ("yes", "y", "true", "t", "1", "duplicate", "v")
NO: Final = ("no", "n", "false", "f", "0", "distinct")
UNDECIDED: Final = ("", "?", "skip", "unsure")
"""Lines with these labels are skipped."""

_KEYS: Final = (("key_a", "key_b"), ("id_a", "id_b"))


def read_labels(path: Path, duplicate_labels: Collection[str] = ()) -> list[PairLabel]:
    """Read a file with the columns key_a, key_b and label; other columns are ignored.

    Args:
        path: of a CSV file in UTF-8, with or without a byte order mark, with a header.
        duplicate_labels: the labels that mean a duplicate in this file; every other label means no duplicate.

    Raises:
        ConfigError: the file cannot be read or is not UTF-8, a column is missing, or a label is not known.
    """
    lines = csv.reader(io.StringIO(read_utf8(path, "label file"), newline=""))
    try:
        return list(_labels(lines, path, {label.casefold() for label in duplicate_labels}))
    except csv.Error as error:
        raise ConfigError("{path} is no CSV file: {error}", path=path, error=error) from None


def _labels(lines: Iterator[list[str]], path: Path, duplicate_labels: Collection[str]) -> Iterator[PairLabel]:
    header = next(lines, [])
    names = [name.strip().casefold() for name in header]
    keys = next((keys for keys in _KEYS if {*keys, "label"} <= set(names)), None)
    if keys is None:
        raise ConfigError("{path} needs the columns key_a, key_b and label", path=path)
    places = [names.index(name) for name in (*keys, "label")]
    for number, line in enumerate(lines, 2):
        if not line:
            continue
        if len(line) <= max(places):
            raise ConfigError(
                "{path}, line {line}: it has {columns}, the header {named}",
                path=path,
                line=number,
                columns=counted(len(line), "column"),
                named=len(header),
            )
        key_a, key_b, label = (line[place] for place in places)
        name = label.strip().casefold()
        if name in UNDECIDED:
            continue
        if duplicate_labels:
            yield PairLabel(key_a, key_b, name in duplicate_labels)
        elif name in (*YES, *NO):
            yield PairLabel(key_a, key_b, name in YES)
        else:
            known = f"{', '.join(YES)} or {', '.join(NO)}"
            raise ConfigError(
                "{path}, line {line}: label {label!r} is none of {known}; "
                "--duplicate-label names what a duplicate is called there",
                path=path,
                line=number,
                label=label[:20],
                known=known,
            )
