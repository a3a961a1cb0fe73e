"""Check the objects of a model before a session stores them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from sqlalchemy import Connection, event
from sqlalchemy.orm import Session, SessionTransaction

from db_dedup.app import Deduplicator
from db_dedup.app.arguments import require
from db_dedup.errors import ConfigError, DedupError, DuplicateError, InvalidArgumentError
from db_dedup.orm.found import FoundDuplicate, forget, keep, permission_of, use_permission
from db_dedup.orm.model import CheckedObject, MappedModel, UnknownValueError
from db_dedup.orm.targets import event_target
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from db_dedup.orm.targets import Sessions

GuardMode = Literal["report", "block"]
OnFound = Callable[[FoundDuplicate], None]

_MODES: Final[tuple[GuardMode, ...]] = get_args(GuardMode)
_NAMED_ROWS: Final = 10
_LOG: Final = logging.getLogger(__name__)


def guard_duplicates(
    sessions: Sessions,
    model: type[Any],
    dedup: Deduplicator,
    mode: GuardMode = "report",
    on_found: OnFound | None = None,
) -> DuplicateGuard:
    """Check new and changed objects of a model before a session stores them.

    An object is checked when a flush stores it, if it is new or one of the watched columns has changed. The
    session is neither committed nor rolled back. Statements that go around the session's objects, such as
    `session.execute(insert(Model))`, are not checked.

    Args:
        sessions: a session, or what makes sessions, also of asyncio.
        model: a mapped class; its subclasses are checked, too.
        dedup: its table.
        mode: "report" stores duplicates and reports them. "block" refuses them with `DuplicateError`, unless
            `allow_duplicate` was called; of sessions that store the same text at the same moment, one
            succeeds. It needs triggers and a scan, as `Deduplicator.check` with `block`.
        on_found: called before an object that is a duplicate is stored, with a `FoundDuplicate`. What it adds
            to the session is stored by the same flush. `allow_duplicate` needs it, to record the reason.

    Returns:
        The guard, which can be removed.

    Raises:
        InvalidArgumentError: an argument is not what it should be.
    """
    require(dedup, Deduplicator, "dedup", Phrase("a Deduplicator"))
    if mode not in _MODES:
        raise InvalidArgumentError(
            "there is no mode {mode!r}: choose from {modes}", mode=mode, modes=", ".join(_MODES)
        )
    if on_found is not None:
        require(on_found, Callable, "on_found", Phrase("a function"))
    return DuplicateGuard(event_target(sessions), MappedModel(model), dedup, mode == "block", on_found)


class DuplicateGuard:
    """Checks the objects of one model in some sessions, from when it is made until it is removed."""

    def __init__(
        self, target: Any, model: MappedModel, dedup: Deduplicator, blocks: bool, on_found: OnFound | None
    ) -> None:
        self._model, self._dedup, self._blocks, self._on_found = model, dedup, blocks, on_found
        self._listeners: dict[str, Callable[..., Any]] = {
            "before_flush": self._before_flush,
            "after_flush": self._after_flush,
            "after_soft_rollback": self._after_soft_rollback,
        }
        self._target = target
        for name, listener in self._listeners.items():
            event.listen(target, name, listener)

    def remove(self) -> None:
        """Check nothing any more."""
        for name, listener in self._listeners.items():
            if event.contains(self._target, name, listener):
                event.remove(self._target, name, listener)

    def _before_flush(self, session: Session, _: object, instances: Sequence[object] | None) -> None:
        session.info.pop(self, None)  # of a flush that failed, whose permissions hold on
        objects = self._model.to_store(session, instances)
        if not objects:
            return
        connection = session.connection(bind_arguments={"mapper": self._model.mapper})
        found = self._check(session, connection, objects)
        if self._blocks:
            self._require_permission(found)
        found = list(map(_with_reason, found))
        keep(session, found)
        session.info[self] = found
        if self._on_found is not None:
            for each in found:
                self._on_found(each)

    def _after_flush(self, session: Session, _: object) -> None:
        """End the permissions that the flush has used: not before, since another guard may need them."""
        for each in session.info.pop(self, ()):
            use_permission(each.instance)

    def _after_soft_rollback(self, session: Session, transaction: SessionTransaction) -> None:
        forget(session, transaction)

    def _check(
        self, session: Session, connection: Connection, objects: Sequence[Any]
    ) -> list[FoundDuplicate]:
        if self._blocks:
            return self._duplicates(session, connection, objects)
        try:
            with self._savepoint(connection):
                return self._duplicates(session, connection, objects)
        except UnknownValueError as error:
            fault: DedupError = error
        except ConfigError:
            raise
        except DedupError as error:
            fault = error
        _LOG.warning("objects of %s were stored without a check: %s", self._model.name, fault)
        return []

    def _savepoint(self, connection: Connection) -> AbstractContextManager[Any]:
        """Keep a statement that fails from ending the application's transaction, where there is one."""
        has_none = self._dedup.database.source_dialect.is_autocommit(connection)
        return nullcontext() if has_none else connection.begin_nested()

    def _duplicates(
        self, session: Session, connection: Connection, objects: Sequence[Any]
    ) -> list[FoundDuplicate]:
        dedup = self._dedup
        while True:
            columns = dedup.checked_columns(connection)
            checked = [CheckedObject(each, columns, connection.dialect) for each in objects]
            checked = [each for each in checked if each.has_changed]
            if not checked:
                return []
            gone = [CheckedObject(o, columns, connection.dialect) for o in self._model.to_delete(session)]
            deleted = [key for each in gone if (key := each.row_key()) is not None]
            records, keys = [each.record() for each in checked], [each.row_key() for each in checked]
            results = dedup.check_together(connection, records, keys, deleted, block=self._blocks)
            if dedup.checked_columns(connection) == columns:  # else a scan by other settings has ended
                break
        return [
            FoundDuplicate(
                each.instance, tuple(result.matches), tuple(checked[i].instance for i in result.others)
            )
            for each, result in zip(checked, results, strict=True)
            if result.matches or result.others
        ]

    def _require_permission(self, found: Sequence[FoundDuplicate]) -> None:
        refused = [each for each in found if not _is_allowed(each)]
        if refused:
            raise DuplicateError(self._dedup.name, refused, "; ".join(map(_described, refused)))
        if found and self._on_found is None:
            raise InvalidArgumentError(
                "the reason why a duplicate of {model} is stored would be lost: give guard_duplicates(...) "
                "a function on_found that records it",
                model=self._model.name,
            )


def _with_reason(found: FoundDuplicate) -> FoundDuplicate:
    permission = permission_of(found.instance)
    return found if permission is None else replace(found, reason=permission.reason)


def _is_allowed(found: FoundDuplicate) -> bool:
    permission = permission_of(found.instance)
    return permission is not None and permission.covers(found)


def _described(found: FoundDuplicate) -> str:
    """Return which rows an object duplicates, without their texts."""
    keys = [match.row_key for match in found.matches]
    named = ["row " + ", ".join(keys[:_NAMED_ROWS]) + ", ..." * (len(keys) > _NAMED_ROWS)] if keys else []
    return " and ".join([*named, *[Phrase("an object of the same flush")] * bool(found.others)])
