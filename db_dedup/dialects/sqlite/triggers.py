"""The triggers on a table in SQLite.

Not `UPDATE OF`: it looks at the names after SET, so that a generated column, and the key where it is called
`rowid`, would change unseen.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, collate, text
from sqlalchemy.dialects import sqlite

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import (
    FoundTrigger,
    QueueTrigger,
    Renderer,
    TriggerPlan,
    TriggerTarget,
    row_of_trigger,
)
from db_dedup.records.names import Namespace

EVENTS: Final = ("insert", "update", "delete")
_RENDERER: Final = Renderer(sqlite.dialect, Path(__file__).with_name("sql"))
_NOW: Final = "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"
_CATALOGUE: Final = text(
    "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' AND name IN :names"
).bindparams(bindparam("names", expanding=True))

_WRITES_TO: Final = text(
    "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' AND instr(sql, :change) > 0 ORDER BY 1"
)


def trigger_names(target: TriggerTarget) -> list[str]:
    """Return the names of our triggers on the table."""
    return [target.trigger_name(event, None, limit_counts_bytes=False) for event in EVENTS]


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
        "now": _NOW,
    }
    return [
        *drop_triggers(plan.target),
        *(
            _RENDERER.statement(f"create_{event}_trigger", trigger=_qualified(name, plan.target), **pieces)
            for event, name in zip(EVENTS, trigger_names(plan.target), strict=True)
        ),
    ]


def drop_triggers(target: TriggerTarget) -> list[str]:
    """Return the statements that drop our triggers; one that is not there is no error."""
    names = trigger_names(target)
    return [_RENDERER.statement("drop_trigger", trigger=_qualified(name, target)) for name in names]


def describe_triggers(connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
    """Find our triggers by name; SQLite keeps the statement that made each, and cannot disable one."""
    rows = connection.execute(_CATALOGUE, {"names": trigger_names(target)})
    return [FoundTrigger(name, f"{table}\n{sql}") for name, table, sql in rows]


def queue_triggers(connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
    """Return the triggers whose statement names our queue."""
    rows = connection.execute(_WRITES_TO, {"change": _RENDERER.queue_name(namespace)})
    return [
        QueueTrigger(name, table, None, _RENDERER.statement("drop_trigger", trigger=_RENDERER.name(name)))
        for name, table in rows
    ]


@contextmanager
def short_lock_wait(connection: Connection) -> Iterator[None]:  # noqa: ARG001
    """Do nothing: the transaction holds the write lock already."""
    yield


def _as_stored(value: ColumnElement[Any]) -> str:
    """Return a value to be compared by bytes: a user's own collation may be missing in another program."""
    return _RENDERER.expression(collate(value, "BINARY"))


def _qualified(name: str, target: TriggerTarget) -> str:
    return _RENDERER.name(name, target.schema)
