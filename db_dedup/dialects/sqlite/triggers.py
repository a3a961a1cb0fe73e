"""The triggers on a table in SQLite.

The triggers do not use `UPDATE OF`. It looks at the names after SET, so it would miss a change of a generated
column, or of a key that is set as `rowid`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, collate, text
from sqlalchemy.dialects import sqlite

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import (
    EventTriggers,
    FoundTrigger,
    QueueTrigger,
    Renderer,
    TriggerPlan,
    TriggerTarget,
    row_of_trigger,
)
from db_dedup.records.names import Namespace

_RENDERER: Final = Renderer(sqlite.dialect, Path(__file__).with_name("sql"))
_TRIGGERS: Final = EventTriggers(_RENDERER, max_name_length=None)
_CATALOGUE: Final = text(
    "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' AND name IN :names"
).bindparams(bindparam("names", expanding=True))

_WRITES_TO: Final = text(
    "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND instr(sql, :change) > 0 ORDER BY 1"
)

trigger_names = _TRIGGERS.names
drop_triggers = _TRIGGERS.drop


def create_triggers(dialect: Dialect, plan: TriggerPlan) -> list[str]:
    """Return the statements that drop triggers of our names and make ours."""
    new, old = row_of_trigger("NEW", plan), row_of_trigger("OLD", plan)
    new_key = _RENDERER.expression(dialect.row_key(plan.key, new))
    old_key = _RENDERER.expression(dialect.row_key(plan.key, old))
    values = [c.name for c in plan.counted if c not in plan.key]
    changes = [f"{_as_stored(old.c[name])} IS NOT {_as_stored(new.c[name])}" for name in values]
    pieces = _RENDERER.pieces(plan.target) | {
        "new_key": new_key,
        "old_key": old_key,
        # Of the key the text counts: 1 and 1.0 are equal, and different keys.
        "has_changed": "\n    OR ".join([f"{old_key} IS NOT {new_key}", *changes]),
        "now": dialect.column_types.utc_now,
    }
    return _TRIGGERS.create(plan.target, pieces)


def describe_triggers(connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
    """Find our triggers by name; SQLite keeps the statement that made each, and cannot disable one."""
    rows = connection.execute(_CATALOGUE, {"names": trigger_names(target)})
    return [FoundTrigger(name, f"{table}\n{sql}") for name, table, sql in rows]


def queue_triggers(connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
    """Return the triggers whose statement names our queue."""
    return _TRIGGERS.writing_to_queue(connection, namespace, _WRITES_TO)


@contextmanager
def short_lock_wait(connection: Connection) -> Iterator[None]:  # noqa: ARG001
    """Do nothing: the transaction holds the write lock already."""
    yield


def _as_stored(value: ColumnElement[Any]) -> str:
    """Return a value to be compared by bytes: a user's own collation may be missing in another program."""
    return _RENDERER.expression(collate(value, "BINARY"))
