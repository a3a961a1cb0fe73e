"""Check the arguments of a caller before they are used, so that a wrong one gives a clear error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable, watched_table
from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.records import PairLabel, Record, TextPair
from db_dedup.records.kinds import KINDS, Kind
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.orm import Session
    from typing_extensions import TypeIs

    SyncBind = Connection | Session
else:

    def __getattr__(name: str) -> Any:
        """Return `SyncBind`, which is made only when it is used."""
        if name != "SyncBind":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return Connection | import_module(ORM).Session


ASYNCIO: Final = "sqlalchemy.ext.asyncio"
ORM: Final = "sqlalchemy.orm"

_T = TypeVar("_T")


def require(value: object, kind: Any, name: str, expected: str) -> None:
    """Check the type of an argument.

    Args:
        value: what was given.
        kind: the class, or classes, that it should be an instance of.
        name: of the argument.
        expected: the same in words, for the message.

    Raises:
        InvalidArgumentError: the value is no instance of it.
    """
    if not isinstance(value, kind):
        raise InvalidArgumentError(
            "{name} should be {expected}, not {value}", name=name, expected=expected, value=_shown(value)
        )


def require_text(value: object, name: str) -> None:
    """Raise InvalidArgumentError unless the value is a str that is not empty."""
    require(value, str, name, Phrase("a name"))
    if not value:
        raise InvalidArgumentError("{name} should be a name, and is empty", name=name)


def require_count(value: object, name: str, least: int = 0) -> None:
    """Raise InvalidArgumentError unless the value is a whole number, and not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(
            "{name} should be a whole number from {least} on, not {value}",
            name=name,
            least=least,
            value=_shown(value),
        )


def require_limit(value: object, name: str = "limit") -> None:
    """Raise InvalidArgumentError unless the value is a whole number from 0 on, or None for no limit."""
    if value is not None:
        require_count(value, name)


def records_of(given: Iterable[Record], name: str = "records") -> Sequence[Record]:
    """Return the records of an iterable.

    Raises:
        InvalidArgumentError: it is no iterable, or an item is no mapping of column names.
    """
    records = list(iterable_of(given, name, Phrase("dicts of column name to value")))
    for record in records:
        require(record, Mapping, Phrase("a record"), Phrase("a dict of column name to value"))
    return records


def iterable_of(given: Iterable[_T], name: str, items: str) -> Iterable[_T]:
    """Return the same iterable.

    Raises:
        InvalidArgumentError: it is no iterable, or it is a text, a bytes object or a mapping.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            "{name} should be a list of {items}, not {given}", name=name, items=items, given=_shown(given)
        )
    return given


def labels_of(given: Iterable[PairLabel]) -> list[PairLabel]:
    """Return the labels of an iterable.

    Raises:
        InvalidArgumentError: it is no iterable, or an item is no label.
    """
    labels = list(iterable_of(given, "labels", "PairLabel"))
    for label in labels:
        require(label, PairLabel, Phrase("a label"), Phrase("a PairLabel"))
        require_said(label)
    return labels


def require_said(label: PairLabel | TextPair) -> None:
    """Raise InvalidArgumentError unless the label says yes or no."""
    require(label.is_duplicate, (bool, np.bool_), "is_duplicate", Phrase("True or False"))


def is_async_engine(given: object) -> TypeGuard[AsyncEngine]:
    """Return whether it is an AsyncEngine; this never imports its module, which the caller has imported."""
    module = sys.modules.get(ASYNCIO)
    return module is not None and isinstance(given, module.AsyncEngine)


def is_session(given: object) -> TypeIs[Session]:
    """Return whether it is a session; this never imports the ORM, which the caller has imported."""
    module = sys.modules.get(ORM)
    return module is not None and isinstance(given, module.Session)


def sync_bind(given: object) -> SyncBind | None:
    """Return the connection or session; of a registry of sessions, the session of this thread.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    module = sys.modules.get(ORM)
    bind = given() if module is not None and isinstance(given, module.scoped_session) else given
    if bind is None or isinstance(bind, Connection) or is_session(bind):
        return bind
    raise InvalidArgumentError(
        "connection should be a Connection or Session of SQLAlchemy, or an AsyncEngine, AsyncConnection or "
        "AsyncSession, not {given}",
        given=_shown(given),
    )


def _shown(value: object) -> str:
    """Return a number as it is; of any other value its type, since the value may be the text of a row."""
    is_number = isinstance(value, bool | int | float | None)
    return repr(value) if is_number else Phrase("a {type}", type=type(value).__name__)


def kinds_of(given: Iterable[Kind] | None) -> tuple[Kind, ...] | None:
    """Return the names of kinds of pairs as a tuple; None for all.

    Raises:
        InvalidArgumentError: there is no such kind.
    """
    if given is None:
        return None
    kinds = tuple(iterable_of(given, "kinds", Phrase("kinds of pairs")))
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidArgumentError(
                "there is no kind of pair {kind!r}: choose from {kinds}", kind=kind, kinds=", ".join(KINDS)
            )
    return kinds


def given_settings(
    table: str | WatchedTable, columns: Mapping[str, object] | None, options: Mapping[str, object]
) -> WatchedTable | None:
    """Return the settings that a caller gives; None if the stored ones are to be used."""
    if isinstance(table, WatchedTable):
        if columns is not None or options:
            raise InvalidArgumentError("a WatchedTable has its settings already: give no columns and options")
        return table
    require_text(table, "table")
    if columns is None:
        if options:
            raise ConfigError(
                "{settings}: settings of a table come with its columns", settings=", ".join(options)
            )
        return None
    require(
        columns, Mapping, "columns", Phrase('a dict of column name to its settings, as {"title": Text()}')
    )
    return watched_table(table, {"columns": dict(columns), **options})
