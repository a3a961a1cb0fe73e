"""What a guard has found, kept with the session until its next transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import inspect
from sqlalchemy.orm import Session, SessionTransaction

from db_dedup.app.arguments import iterable_of, require
from db_dedup.errors import InvalidArgumentError
from db_dedup.records import Match
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from db_dedup.orm.targets import AnySession

_FOUND: Final = "db_dedup.found"
_ALLOWED: Final = "db_dedup.allowed"


@dataclass(frozen=True)
class FoundDuplicate:
    """An object of a guarded model that duplicates stored rows, or objects of the same flush.

    Attributes:
        instance: the object.
        matches: the stored rows, the nearest first.
        others: objects of the same flush, each of which is stored before this one.
        reason: the reason that was given for storing it; None if there is none.
    """

    instance: Any
    matches: tuple[Match, ...]
    others: tuple[Any, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Permission:
    """Why an object may be stored although it is a duplicate, and of which rows; None for any."""

    reason: str
    row_keys: frozenset[str] | None

    def covers(self, found: FoundDuplicate) -> bool:
        """Return whether every row that was found is one of these."""
        if self.row_keys is None:
            return True
        return not found.others and self.row_keys.issuperset(match.row_key for match in found.matches)


def allow_duplicate(instance: object, reason: str, matches: Iterable[Match] | None = None) -> None:
    """Let an object be stored although it is a duplicate.

    This holds until one flush that finds a duplicate has succeeded, for all guards of the model.

    Args:
        instance: an object of a guarded model.
        reason: why; the guard hands it to `on_found`, which records it.
        matches: the rows that somebody has seen; another one refuses the object again. None for any rows.

    Raises:
        InvalidArgumentError: there is no reason, or it is no object of a mapped class.
    """
    state = inspect(instance, raiseerr=False)
    if state is None or not hasattr(state, "info"):
        raise InvalidArgumentError("instance should be an object of a mapped class")
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidArgumentError("reason should say why the duplicate is stored, and is empty")
    seen = None if matches is None else list(iterable_of(matches, "matches", "Match"))
    for match in seen or ():
        require(match, Match, Phrase("a match"), Phrase("a Match"))
    row_keys = None if seen is None else frozenset(match.row_key for match in seen)
    state.info[_ALLOWED] = Permission(reason, row_keys)


def permission_of(instance: object) -> Permission | None:
    """Return the permission of an object; None if it has none."""
    found: Permission | None = inspect(instance, raiseerr=True).info.get(_ALLOWED)
    return found


def use_permission(instance: object) -> None:
    """Let the permission of an object end."""
    inspect(instance, raiseerr=True).info.pop(_ALLOWED, None)


def found_duplicates(session: AnySession) -> list[FoundDuplicate]:
    """Return what guards have found in the session's transaction, or in its last one if it has none.

    What was found in a transaction that was rolled back is left out.
    """
    kept: _Kept | None = session.info.get(_FOUND)
    return [] if kept is None else [found for _, found in kept.found]


def keep(session: Session, found: Iterable[FoundDuplicate]) -> None:
    """Keep what was found in the session's transaction."""
    root = session.get_transaction()
    innermost = session.get_nested_transaction() or root
    kept: _Kept | None = session.info.get(_FOUND)
    if kept is None or kept.root is not root:
        kept = session.info[_FOUND] = _Kept(root)
    kept.found += [(innermost, each) for each in found]


def forget(session: Session, transaction: SessionTransaction) -> None:
    """Forget what was found in a transaction that was rolled back, or within it."""
    kept: _Kept | None = session.info.get(_FOUND)
    if kept is not None:
        kept.found = [(place, found) for place, found in kept.found if not _is_within(place, transaction)]


@dataclass
class _Kept:
    root: SessionTransaction | None
    found: list[tuple[SessionTransaction | None, FoundDuplicate]] = field(default_factory=list)


def _is_within(place: SessionTransaction | None, transaction: SessionTransaction) -> bool:
    while place is not None and place is not transaction:
        place = place.parent
    return place is not None
