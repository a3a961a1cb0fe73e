"""Read labelled pairs from a CSV file, such as another tool writes."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from db_dedup.csv_records import csv_records, detect_separator
from db_dedup.encodings import read_utf8
from db_dedup.errors import ConfigError
from db_dedup.plurals import counted
from db_dedup.records import PairLabel, TextPair
from db_dedup.translation import Phrase

YES: Final = ("yes", "y", "true", "t", "1", "duplicate", "v", "是", "重复")
NO: Final = ("no", "n", "false", "f", "0", "distinct", "否", "不重复")
UNDECIDED: Final = ("", "?", "skip", "unsure", "不确定")
"""Lines with these labels are skipped."""

_KEYS: Final = (("key_a", "key_b"), ("id_a", "id_b"))
_TEXTS: Final = (("text_a", "text_b"),)


class _Line(NamedTuple):
    number: int
    one: str
    other: str
    is_duplicate: bool


def read_labels(path: Path, duplicate_labels: Collection[str] = ()) -> list[PairLabel]:
    """Read a file with the columns key_a, key_b and label; other columns are ignored.

    Args:
        path: of a CSV file in UTF-8, with or without a byte order mark, with a header; its separator is
            detected.
        duplicate_labels: the labels that mean a duplicate in this file; every other label means no duplicate.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8 or not well-formed CSV, a column is missing, or a
            label is not known.
    """
    lines = _read(path, _KEYS, duplicate_labels)
    return [PairLabel(line.one, line.other, line.is_duplicate) for line in lines]


def read_text_pairs(path: Path, duplicate_labels: Collection[str] = ()) -> list[TextPair]:
    """Read a file with the columns text_a, text_b and label, as `read_labels` reads one of keys.

    Raises:
        ConfigError: as there; or a text is empty.
    """
    lines = _read(path, _TEXTS, duplicate_labels)
    for line in lines:
        for name, text in (("text_a", line.one), ("text_b", line.other)):
            if not text.strip():
                raise ConfigError(
                    "{path}, line {line}: {name} is empty: fill it in, or leave the line out",
                    path=path,
                    line=line.number,
                    name=name,
                )
    return [TextPair(line.one, line.other, line.is_duplicate) for line in lines]


def _read(path: Path, columns: Sequence[tuple[str, str]], duplicate_labels: Collection[str]) -> list[_Line]:
    text = read_utf8(path, Phrase("label file"))
    records = csv_records(text, path, detect_separator(text))
    return list(_labels(records, path, columns, {label.casefold() for label in duplicate_labels}))


def _labels(
    records: Iterator[tuple[int, list[str]]],
    path: Path,
    columns: Sequence[tuple[str, str]],
    duplicate_labels: Collection[str],
) -> Iterator[_Line]:
    _, header = next(records, (1, []))
    names = [name.strip().casefold() for name in header]
    pair = next((pair for pair in columns if {*pair, "label"} <= set(names)), None)
    if pair is None:
        raise ConfigError(
            "{path} needs the columns {one}, {other} and label{hint}",
            path=path,
            one=columns[0][0],
            other=columns[0][1],
            hint=_hint(set(names), columns),
        )
    places = [names.index(name) for name in (*pair, "label")]
    for number, record in records:
        if not record:
            continue
        if len(record) <= max(places):
            raise ConfigError(
                "{path}, line {line}: it has {columns}, the header {named}",
                path=path,
                line=number,
                columns=counted(len(record), "column"),
                named=len(header),
            )
        one, other, label = (record[place] for place in places)
        name = label.strip().casefold()
        if name in UNDECIDED:
            continue
        if duplicate_labels:
            yield _Line(number, one, other, name in duplicate_labels)
        elif name in (*YES, *NO):
            yield _Line(number, one, other, name in YES)
        else:
            known = Phrase("{yes} or {no}", yes=", ".join(YES), no=", ".join(NO))
            raise ConfigError(
                "{path}, line {line}: label {label!r} is none of {known}; "
                "--duplicate-label names what a duplicate is called there",
                path=path,
                line=number,
                label=label[:20],
                known=known,
            )


def _hint(names: Collection[str], columns: Sequence[tuple[str, str]]) -> str:
    """Return what else the file may be for."""
    if columns == _TEXTS and any(set(pair) <= set(names) for pair in _KEYS):
        return Phrase(": it has keys of rows, so name their TABLE as well")
    if columns == _KEYS and any(set(pair) <= set(names) for pair in _TEXTS):
        return Phrase(": it has texts, which `db-dedup compare --pairs` reads without a table")
    return ""
