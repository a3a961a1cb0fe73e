"""What both rows of a pair must agree in: the value of a column, or a part of a date in it."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from db_dedup.errors import ConfigError
from db_dedup.flow.rows.values import canonical_text, far_date, moment_of
from db_dedup.records import Family, SourceColumn
from db_dedup.translation import Phrase

WithinBy = Literal["value", "day", "month", "year"]
"""The whole value of a column, or a part of a date."""

_CUTS: Final[Mapping[str, int]] = {"day": len("2019-02-14"), "month": len("2019-02"), "year": len("2019")}
_PARTS: Final[Mapping[str, int]] = {"day": 3, "month": 2, "year": 1}
_MAY_BE_DATES: Final = (Family.TEXT, Family.OTHER)
_BEGINS_AS_DATE: Final = re.compile(r"\s*\d{4}([-/.]\d\d){0,2}(?!\d)", re.ASCII)


def within_part(by: WithinBy, value: Any, family: Family) -> str:
    """Return the text that both rows must share; "" for a row without a value."""
    if by == "value":
        return canonical_text(value, family).strip()
    text = _date_text(value, family)
    far = far_date(text)
    if far is None:
        return text[: _CUTS[by]]
    kept = (str(far.year), far.month, far.day)[: _PARTS[by]]
    return "-".join(kept) + (" BC" if far.is_before_christ else "")


def check_dates(by: WithinBy, column: SourceColumn, read_sample: Callable[[], Iterable[Any]]) -> None:
    """Check that a column holds dates where a part of a date is asked of it.

    Args:
        by: what the settings ask of the column.
        column: as inspection found it.
        read_sample: reads some of its values; called where the type does not say that they are dates, as
            SQLite and files have no such type.

    Raises:
        ConfigError: its type can hold no dates, or it has values and none of them is a date.
    """
    if by == "value" or column.family is Family.DATE:
        return
    if column.family not in _MAY_BE_DATES:
        raise _no_dates(
            by, column, Phrase("a column of the type {type}", type=column.type_name or column.family)
        )
    texts = [text for value in read_sample() if (text := _date_text(value, column.family))]
    if texts and not any(map(_is_date, texts)):
        raise _no_dates(
            by, column, Phrase("a column of texts in which no date was found; one begins as 2024-01-31 does")
        )


def _date_text(value: Any, family: Family) -> str:
    return canonical_text(canonical_text(value, family), Family.DATE).strip()


def _is_date(text: str) -> bool:
    return bool(moment_of(text) or far_date(text) or _BEGINS_AS_DATE.match(text))


def _no_dates(by: WithinBy, column: SourceColumn, found: str) -> ConfigError:
    return ConfigError(
        'within = {{ column = "{column}", by = "{by}" }} takes a column of dates, not {found}',
        column=column.name,
        by=by,
        found=found,
    )
