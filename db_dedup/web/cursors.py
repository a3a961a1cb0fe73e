"""Cursors: where a page ended, as a text that clients send back without reading it."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from db_dedup.store.answer_pages import GroupPlace, PairPlace
from db_dedup.web.problems import RefusedError

_T = TypeVar("_T")

LONGEST_CURSOR: Final = 20_000
"""Characters; two row keys have at most 1,400, each escaped by up to 12 characters."""


def cursor_of(place: tuple[Any, ...]) -> str:
    """Return the cursor of a place: its values as JSON in base64."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def cut_page(
    found: Sequence[_T], limit: int, place_of: Callable[[_T], tuple[Any, ...]]
) -> tuple[Sequence[_T], str | None]:
    """Return (the entries of a page, the cursor of the next page or None if it is the last one).

    Args:
        found: the entries from the page on, at least one more than the page has unless it is the last one.
        limit: the most entries of a page.
        place_of: the place of an entry, for its cursor.
    """
    shown = found[:limit]
    return shown, cursor_of(place_of(shown[-1])) if len(found) > limit else None


def pair_place(cursor: str | None) -> PairPlace | None:
    """Return the place of a cursor of pairs; RefusedError if it is none."""
    return None if cursor is None else PairPlace(*_values(cursor, int, str, str))


def group_place(cursor: str | None) -> GroupPlace | None:
    """Return the place of a cursor of groups; RefusedError if it is none."""
    return None if cursor is None else GroupPlace(*_values(cursor, int, str))


def review_place(cursor: str | None) -> tuple[int, int, str] | None:
    """Return the place of a cursor of reviewed groups; RefusedError if it is none."""
    if cursor is None:
        return None
    part, number, group_id = _values(cursor, int, int, str)
    return part, number, group_id


def member_place(cursor: str | None) -> str | None:
    """Return the row key of a cursor of members; RefusedError if it is none."""
    return None if cursor is None else str(_values(cursor, str)[0])


def label_place(cursor: str | None) -> tuple[datetime, str, str] | None:
    """Return (time, keys) of the last label; RefusedError if it is no cursor of labels."""
    if cursor is None:
        return None
    decided_at, key_a, key_b = _values(cursor, str, str, str)
    try:
        moment = datetime.fromisoformat(decided_at)
    except ValueError:
        raise _wrong() from None
    if moment.tzinfo is not None:
        raise _wrong()
    return moment, key_a, key_b


def _values(cursor: str, *types: type) -> list[Any]:
    try:
        padded = cursor[:LONGEST_CURSOR] + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise _wrong() from None
    if not isinstance(values, list) or [type(value) for value in values] != list(types):
        raise _wrong()
    if any("\0" in value if isinstance(value, str) else not 0 <= value < 1 << 62 for value in values):
        raise _wrong()
    return values


def _wrong() -> RefusedError:
    return RefusedError("invalid", "cursor: send the next_cursor of the page before, or leave it out.")
