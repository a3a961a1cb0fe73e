"""What a caller hands over, checked before it is used: one clear line instead of an error from the depths."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from sqlalchemy import Connection
from sqlalchemy.orm import Session, scoped_session

from db_dedup.errors import InvalidArgumentError
from db_dedup.records import PairLabel, Record

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

ASYNCIO: Final = "sqlalchemy.ext.asyncio"

_T = TypeVar("_T")

SyncBind = Connection | Session


def require(value: object, kind: Any, name: str, expected: str) -> None:
    """Check the type of an argument.

    Args:
        value: what was given.
        kind: the class, or classes, that it should be an instance of.
        name: of the argument.
        expected: the same in words.

    Raises:
        InvalidArgumentError: it is none.
    """
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"{name} should be {expected}, not {_shown(value)}")


def require_text(value: object, name: str) -> None:
    """Raise InvalidArgumentError unless it is a str that says something."""
    require(value, str, name, "a name")
    if not value:
        raise InvalidArgumentError(f"{name} should be a name, and is empty")


def require_count(value: object, name: str, least: int = 0) -> None:
    """Raise InvalidArgumentError unless it is a whole number, and not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} should be a whole number from {least} on, not {_shown(value)}")


def require_limit(value: object, name: str = "limit") -> None:
    """As `require_count`; None is no limit."""
    if value is not None:
        require_count(value, name)


def records_of(given: Iterable[Record], name: str = "records") -> Sequence[Record]:
    """The records of an iterable.

    Raises:
        InvalidArgumentError: it is none, or one of them is no mapping of column names.
    """
    records = list(iterable_of(given, name, "dicts of column name to value"))
    for record in records:
        require(record, Mapping, "a record", "a dict of column name to value")
    return records


def iterable_of(given: Iterable[_T], name: str, items: str) -> Iterable[_T]:
    """The same iterable; a text, a bytes object and a mapping are none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidArgumentError(f"{name} should be a list of {items}, not {_shown(given)}")
    return given


def labels_of(given: Iterable[PairLabel]) -> list[PairLabel]:
    """Labels; InvalidArgumentError for what is none."""
    labels = list(iterable_of(given, "labels", "PairLabel"))
    for label in labels:
        require(label, PairLabel, "a label", "a PairLabel")
    return labels


def is_async_engine(given: object) -> TypeGuard[AsyncEngine]:
    """Whether it is an AsyncEngine; whoever has one has imported its module."""
    module = sys.modules.get(ASYNCIO)
    return module is not None and isinstance(given, module.AsyncEngine)


def sync_bind(given: object) -> SyncBind | None:
    """The connection or session; that of this thread, where a registry of sessions was given."""
    bind = given() if isinstance(given, scoped_session) else given
    if bind is None or isinstance(bind, Connection | Session):
        return bind
    raise InvalidArgumentError(
        f"connection should be a Connection or Session of SQLAlchemy, or an AsyncEngine, AsyncConnection or "
        f"AsyncSession, not {_shown(given)}"
    )


def _shown(value: object) -> str:
    """A number as it is, of all else the type: it may hold the text of a row."""
    return repr(value) if isinstance(value, bool | int | float | None) else f"a {type(value).__name__}"
