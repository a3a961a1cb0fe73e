"""Describe a column by a sample of its values."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

from db_dedup.records import Family

SAMPLE_CHARACTERS: Final = 10_000
"""How much of each value in a sample is read, so that very long texts take no longer to judge."""

_IDEOGRAPHS_A_WORD: Final = 2
_ESCAPE: Final = len("\\u4e00")
_MOSTLY: Final = 0.8
"""A column has a form if at least this share of its values has it."""
_NEARLY_ALL: Final = 0.99

# Scripts without spaces between words: about two characters make a word.
UNSPACED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_UNSPACED_CHARACTER: Final = re.compile(UNSPACED)
_SPACED_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_DATE: Final = re.compile(
    r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}.{0,20}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}.{0,20}"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} \d{1,2} [\d:]{8} .{0,11}",
    re.DOTALL,
)
_SORTABLE_DATE: Final = re.compile(r"\d{4}([-/.年])\d\d[-/.月]\d\d(日?[ T]*\d\d[:时].*)?日?", re.DOTALL)
"""Year first and no digit left out, so that the texts sort by time."""
# Possessive: thousands of digits before a letter would otherwise be tried in all divisions in two.
_NUMBER: Final = re.compile(r"[-+]?[\d,]*+(?:\.\d++|(?<=\d))([eE][+-]?\d++)?%?")
_LINK_OR_FILE: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://\S+|www\.\S+|[\w.+-]+@[\w-]+(\.[\w-]+)+|(/|[a-z]:\\)\S+"
    r"|\S+\.(pdf|docx?|xlsx?|pptx?|wps|ofd|jpe?g|png|gif|bmp|tiff?|mp[34]|wav|avi|mov|txt|csv|json|xml|html?"
    r"|zip|rar|7z)",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"(?=\S*\d)[\w.:/+#-]+|[0-9a-f-]{16,}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class ColumnProfile:
    """A description of the values of one column.

    Attributes:
        name: the name of the column.
        values: the number of rows of the sample that have a value.
        filled_share: the share of rows of the sample that have a value, 0 to 1.
        mean_length: the mean length of the values, in characters.
        mean_words: the mean number of words of the values; two ideographs count as a word.
        distinct: the number of different values in the sample.
        distinct_share: the share of different values among the values, 0 to 1.
        form: "text", "number", "date", "unsorted date" (texts that do not sort by time), "JSON", "link or
            file name", "code", "flag" or "binary"; "" without any value.
    """

    name: str
    values: int
    filled_share: float
    mean_length: float
    mean_words: float
    distinct: int
    distinct_share: float
    form: str


def profile_column(name: str, family: Family, values: Sequence[str]) -> ColumnProfile:
    """Describe a column by the canonical texts of a sample of its values, "" for NULL.

    At most `SAMPLE_CHARACTERS` of each are needed.
    """
    filled = [value.strip() for value in values if value.strip()]
    if not filled:
        return ColumnProfile(name, 0, 0.0, 0.0, 0.0, 0, 0.0, "")
    distinct = len(set(filled))
    return ColumnProfile(
        name,
        len(filled),
        len(filled) / len(values),
        mean(map(len, filled)),
        mean(map(count_words, filled)),
        distinct,
        distinct / len(filled),
        _FORM_OF_FAMILY.get(family) or _form(filled),
    )


def count_words(text: str) -> float:
    """Return roughly how many words a text has, in scripts with and without spaces."""
    unspaced = len(_UNSPACED_CHARACTER.findall(text))
    return unspaced / _IDEOGRAPHS_A_WORD + len(_SPACED_WORD.findall(_UNSPACED_CHARACTER.sub(" ", text)))


_FORM_OF_FAMILY: Final = {
    Family.NUMBER: "number",
    Family.BOOLEAN: "flag",
    Family.DATE: "date",
    Family.TIME: "date",
    Family.BINARY: "binary",
    Family.UUID: "code",
}


def _is_json(text: str) -> bool:
    """Return whether a text is JSON or its beginning: a sample holds the beginnings of long values."""
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        is_cut_escape = error.msg.startswith("Invalid \\u") and len(text) - error.pos <= _ESCAPE
        return error.pos >= len(text) or error.msg.startswith("Unterminated string") or is_cut_escape
    except (ValueError, RecursionError):
        return False
    return True


_FORMS: Final[tuple[tuple[str, Callable[[str], object]], ...]] = (
    ("date", _DATE.fullmatch),
    ("number", _NUMBER.fullmatch),
    ("JSON", _is_json),
    ("link or file name", _LINK_OR_FILE.fullmatch),
    ("code", _CODE.fullmatch),
)


def _form(values: Sequence[str]) -> str:
    """Return the form of most values; "text" if no form has enough of them."""
    counted = Counter(next((name for name, matches in _FORMS if matches(value)), "text") for value in values)
    (form, count), *_ = counted.most_common(1)
    if form == "date" and not _sort_by_time([value for value in values if _DATE.fullmatch(value)]):
        form = "unsorted date"
    return form if form == "text" or count >= _MOSTLY * counted.total() else "text"


def _sort_by_time(dates: Sequence[str]) -> bool:
    """Return whether nearly all of these dates sort by time as texts: they are written in one way."""
    ways = Counter(match[1] for match in map(_SORTABLE_DATE.fullmatch, dates) if match)
    return max(ways.values(), default=0) >= _NEARLY_ALL * len(dates)
