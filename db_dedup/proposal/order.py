"""Choose the column that says which row was received first, by names, types and a sample of the values."""

from collections.abc import Mapping, Sequence
from typing import Final

from db_dedup.proposal.names import words_of_name
from db_dedup.records import Family, SourceColumn, SourceTable

_RECEIVED: Final = ("creat", "receiv", "submit", "insert", "regist", "time", "date", "时间", "日期", "登记")
_ENDINGS: Final = ("time", "date")
"""These may also end a word, as in datetime."""
_OF_ANOTHER_TIME: Final = (
    "birth", "dob", "updat", "modif", "chang", "delet", "expir", "deadline", "due", "valid",
    "出生", "生日", "更新", "修改", "变更", "删除", "截止", "期限", "到期", "有效", "失效",
)  # fmt: skip
"""A row has such a date before it is received, or gets another one after each edit."""
_TIME: Final = frozenset({"at", "on", "time", "date", "datetime", "timestamp"})
_TIME_OF_IDEOGRAPHS: Final = ("时间", "日期")


def choose_order(source: SourceTable, key: Sequence[str], forms: Mapping[str, str]) -> str | None:
    """Return the column that says when a row was received, or None.

    A date or time whose name says so is best, then any date or time, then a text whose name says so and
    whose values are dates. The name may not say that the date is another one, such as that of an edit.

    Args:
        source: the table.
        key: its key; a column that is the whole key is not chosen.
        forms: name of each column -> the form of its values as `profile_column` finds it; empty if the table
            has no rows, so that the names alone decide.
    """
    possible = [c for c in source.columns if key != (c.name,) and not _begins_word(c.name, _OF_ANOTHER_TIME)]
    dates = [c for c in possible if c.family is Family.DATE]
    named = [c for c in dates if _sounds_like_receipt(c)]
    texts = [c for c in possible if _sounds_like_receipt(c) and _holds_dates_as_texts(c, forms)]
    for preferred in (named, dates, texts):
        if preferred:
            return min(preferred, key=lambda c: _rank(c.name)).name
    return None


def _holds_dates_as_texts(c: SourceColumn, forms: Mapping[str, str]) -> bool:
    return c.family is Family.TEXT and (forms[c.name] == "date" if forms else _names_a_time(c.name))


def _names_a_time(name: str) -> bool:
    words = words_of_name(name)
    # Both words written as one, as in createtime; candidate has only the end of one.
    is_joined = any(word.startswith(_RECEIVED) and word.endswith(_ENDINGS) for word in words)
    is_named = not _TIME.isdisjoint(words) or any(word in name for word in _TIME_OF_IDEOGRAPHS)
    return is_joined or is_named


def _sounds_like_receipt(c: SourceColumn) -> bool:
    return _rank(c.name) < len(_RECEIVED)


def _rank(name: str) -> int:
    """Return the position in `_RECEIVED` of the first word that the name contains; lower is better."""
    return next((i for i, word in enumerate(_RECEIVED) if _has_word(name, word)), len(_RECEIVED))


def _has_word(name: str, word: str) -> bool:
    return _begins_word(name, (word,)) or (
        word in _ENDINGS and any(part.endswith(word) for part in words_of_name(name))
    )


def _begins_word(name: str, beginnings: tuple[str, ...]) -> bool:
    """Return whether a word of the name begins so; Chinese, which has no spaces, may be anywhere in it."""
    return any(
        part.startswith(beginning) or (not beginning.isascii() and beginning in part)
        for part in words_of_name(name)
        for beginning in beginnings
    )
