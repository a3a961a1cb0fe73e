"""Choose the column that says which row was received first, by names and types."""

from collections.abc import Sequence
from typing import Final

from db_dedup.records import Family, SourceColumn, SourceTable

_RECEIVED: Final = ("creat", "receiv", "submit", "insert", "regist", "time", "date", "时间", "日期", "登记")


def choose_order(source: SourceTable, key: Sequence[str]) -> str | None:
    """Return the column that says when a row was received, or None.

    A date or time whose name says so is best, then any date or time, then a text whose name says so.
    """
    dates = [c for c in source.columns if c.family is Family.DATE and key != (c.name,)]
    named = [c for c in source.columns if key != (c.name,) and _sounds_like_receipt(c)]
    for preferred in ([c for c in dates if c in named], dates, [c for c in named if c.family is Family.TEXT]):
        if preferred:
            return min(preferred, key=lambda c: _rank(c.name)).name
    return None


def _sounds_like_receipt(c: SourceColumn) -> bool:
    return _rank(c.name) < len(_RECEIVED)


def _rank(name: str) -> int:
    """Return the position in `_RECEIVED` of the first word that the name contains; lower is better."""
    lowered = name.casefold()
    return next((i for i, word in enumerate(_RECEIVED) if word in lowered), len(_RECEIVED))
