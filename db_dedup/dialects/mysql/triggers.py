"""The triggers on a table in MySQL and MariaDB."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DBAPIError

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import (
    TABLE_LOCK_SECONDS,
    EventTriggers,
    FoundTrigger,
    QueueTrigger,
    Renderer,
    TriggerPlan,
    TriggerTarget,
    row_of_trigger,
)
from db_dedup.records import Family, SourceColumn
from db_dedup.records.names import Namespace
from db_dedup.translation import Phrase

_ACCESS_DENIED: Final = 1227
_SQL: Final = Path(__file__).with_name("sql")
_RENDERER: Final = Renderer(mysql.dialect, _SQL)
_TRIGGERS: Final = EventTriggers(_RENDERER, max_name_length=64)
_DESCRIBE: Final = text((_SQL / "describe_triggers.sql").read_text(encoding="utf-8")).bindparams(
    bindparam("names", expanding=True)
)
_WRITES_TO: Final = text((_SQL / "list_queue_triggers.sql").read_text(encoding="utf-8"))
_ENGINE_REFUSED: Final = text((_SQL / "engine_refused_with_triggers.sql").read_text(encoding="utf-8"))
_COMPARED_AS_BYTES: Final = (Family.TEXT, Family.UUID, Family.OTHER)
"""Families whose different values may be equal under a collation."""

trigger_names = _TRIGGERS.names
drop_triggers = _TRIGGERS.drop


def create_triggers(dialect: Dialect, plan: TriggerPlan) -> list[str]:
    """Return the statements that drop triggers of our names and make ours."""
    new, old = row_of_trigger("NEW", plan), row_of_trigger("OLD", plan)

    def is_unchanged(column: SourceColumn) -> str:
        sides = [_RENDERER.expression(row.c[column.name]) for row in (old, new)]
        if column.family in _COMPARED_AS_BYTES:
            sides = [f"CAST({side} AS BINARY)" for side in sides]
        return " <=> ".join(sides)

    pieces = _RENDERER.pieces(plan.target) | {
        "new_key": _RENDERER.expression(dialect.row_key(plan.key, new)),
        "old_key": _RENDERER.expression(dialect.row_key(plan.key, old)),
        "is_unchanged": "\n    AND ".join(map(is_unchanged, plan.counted)),
    }
    return _TRIGGERS.create(plan.target, pieces)


def describe_triggers(connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
    """Find our triggers by name. Some accounts without the right TRIGGER on the table cannot see them."""
    names = trigger_names(target)
    rows = connection.execute(_DESCRIBE, {"names": names, "schema": target.schema})
    found = [FoundTrigger(name, definition) for name, definition in rows]
    seen = {trigger.name for trigger in found}
    return found + [
        FoundTrigger(name, None, hidden=_hidden(target))
        for name in names
        if name not in seen and _is_denied(connection, target, name)
    ]


def missing_right_to_drop(connection: Connection, target: TriggerTarget) -> str | None:
    """Return the message for an account without the right TRIGGER on the table; None for others."""
    is_denied = any(_is_denied(connection, target, name) for name in trigger_names(target))
    return _hidden(target) if is_denied else None


def _hidden(target: TriggerTarget) -> str:
    return Phrase(
        "no right to see the triggers of {table!r} (needed: GRANT TRIGGER ON {table})", table=target.table
    )


def _is_denied(connection: Connection, target: TriggerTarget, name: str) -> bool:
    """Return whether a trigger exists that this account may not see."""
    try:
        connection.exec_driver_sql(
            f"SHOW CREATE TRIGGER {_RENDERER.name(name, target.schema)}",
            execution_options={"no_parameters": True},
        ).close()
    except DBAPIError as error:
        return error.orig is not None and bool(error.orig.args[0] == _ACCESS_DENIED)
    return False


def fault_of_triggers(connection: Connection, target: TriggerTarget) -> str | None:
    """Return the message for a table whose writes the server would refuse; None for others."""
    engine = connection.scalar(_ENGINE_REFUSED, {"table": target.table, "schema": target.schema})
    if engine is None:
        return None
    return Phrase(
        "{table!r} has the storage engine {engine}, without transactions, and with our triggers this server "
        "would refuse each write to it (enforce_gtid_consistency): convert it (ALTER TABLE ... ENGINE = "
        "InnoDB), or run a scan from time to time",
        table=target.table,
        engine=engine,
    )


def queue_triggers(connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
    """Return the triggers in this database whose statement names our queue."""
    return _TRIGGERS.writing_to_queue(connection, namespace, _WRITES_TO)


@contextmanager
def short_lock_wait(connection: Connection) -> Iterator[None]:
    """Set the time-out of this session, and put it back at the end."""
    before = connection.exec_driver_sql("SELECT @@SESSION.lock_wait_timeout").scalar_one()
    connection.exec_driver_sql(f"SET SESSION lock_wait_timeout = {TABLE_LOCK_SECONDS}")
    try:
        yield
    finally:
        connection.exec_driver_sql(f"SET SESSION lock_wait_timeout = {int(before)}")
