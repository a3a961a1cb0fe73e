"""The triggers on a table in PostgreSQL, and the function that they call."""

from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, FromClause, literal, text
from sqlalchemy.dialects import postgresql

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.postgresql.catalogue import table_oid
from db_dedup.dialects.postgresql.sessions import setting
from db_dedup.dialects.triggers import (
    ROW_EVENTS,
    TABLE_LOCK_SECONDS,
    FoundTrigger,
    QueueTrigger,
    Renderer,
    TriggerPlan,
    TriggerTarget,
    row_of_trigger,
)
from db_dedup.records import Family
from db_dedup.records.names import Namespace, fit_name
from db_dedup.translation import Phrase

EVENTS: Final = (*ROW_EVENTS, "truncate")
_LIMIT: Final = 63
_SQL: Final = Path(__file__).with_name("sql")
_RENDERER: Final = Renderer(postgresql.dialect, _SQL)
_DESCRIBE_FUNCTION: Final = text((_SQL / "describe_function.sql").read_text(encoding="utf-8"))
_DESCRIBE_TRIGGERS: Final = text((_SQL / "describe_triggers.sql").read_text(encoding="utf-8"))
_WRITES_TO: Final = text((_SQL / "list_queue_triggers.sql").read_text(encoding="utf-8"))
_FAULTS: Final = {
    "D": Phrase("is disabled"),
    "O": Phrase("does not fire in sessions that replicate"),
    "R": Phrase("fires only in sessions that replicate"),
}
# The text of some keys, such as a range or an array, depends on the settings of the session that writes. For
# all other keys the function names each schema and has no settings of its own: to set a search path takes
# about half as long as to write the entry into the queue.
_PINS: Final = """
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO, YMD'
SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' SET extra_float_digits = 1"""


def trigger_names(target: TriggerTarget) -> list[str]:
    """Return the names of our triggers on the table, and of their function."""
    triggers = [target.trigger_name(event, _LIMIT, limit_counts_bytes=True) for event in EVENTS]
    return [*triggers, _function_name(target)]


def create_triggers(dialect: Dialect, plan: TriggerPlan) -> list[str]:
    """Return the statements that drop what has our names, and make the function and its triggers."""
    new, old = row_of_trigger("NEW", plan), row_of_trigger("OLD", plan)
    pieces = _pieces(plan.target)
    pieces |= {
        "function_text": _RENDERER.expression(literal(f"{pieces['function']}()")),
        "table_text": _RENDERER.expression(literal(pieces["table"])),
        "new_key": _RENDERER.expression(dialect.row_key(plan.key, new)),
        "old_key": _RENDERER.expression(dialect.row_key(plan.key, old)),
        # A column that a condition uses cannot be dropped unnoticed, and the function depends on the key.
        "new_has_key": _has_key(plan, new),
        "old_has_key": _has_key(plan, old),
        # Compares the bytes: json and point have no equality, and a collation may call different texts equal.
        "has_changed": f"pg_catalog.record_image_ne({_record(plan, old)}, {_record(plan, new)})",
        "settings": _PINS if any(c.family is Family.OTHER for c in plan.key) else "",
    }
    pieces["body"] = _dollar_quoted(_RENDERER.statement("function_body", **pieces))
    # Whoever makes a partition needs the right to call the function of the triggers on it.
    pieces["grant"] = _dollar_quoted(_RENDERER.statement("grant_to_owner_body", **pieces))
    jobs = "drop_function", "create_function", "revoke_function", "grant_to_owner"
    statements = [_RENDERER.statement(job, **pieces) for job in jobs]
    for event, trigger in _triggers(plan.target):
        # A statement's trigger, unlike a row's, has no twins on the partitions to be enabled with it.
        only = "ONLY " if event == "truncate" else ""
        statements += [
            _RENDERER.statement(f"create_{event}_trigger", trigger=trigger, **pieces),
            _RENDERER.statement("enable_trigger", trigger=trigger, only=only, **pieces),
        ]
    return statements


def drop_triggers(target: TriggerTarget) -> list[str]:
    """Return the statements; with the function go its triggers, also on a table that was renamed
    meanwhile."""
    pieces = _pieces(target)
    by_name = [
        _RENDERER.statement("drop_trigger", trigger=trigger, **pieces) for _, trigger in _triggers(target)
    ]
    return [_RENDERER.statement("drop_function", **pieces), *by_name]


def describe_triggers(connection: Connection, target: TriggerTarget) -> list[FoundTrigger]:
    """Find our triggers by name; of their copies on partitions only those that do not fire as they should."""
    relation = table_oid(connection, _RENDERER.name(target.table, target.schema))
    function = {"schema": target.namespace.schema, "function": _function_name(target)}
    wanted = function | {"table": relation, "names": trigger_names(target)}
    # The catalogue writes names with or without their schema, as the session would find them.
    with setting(connection, "search_path", "pg_catalog"):
        functions = connection.execute(_DESCRIBE_FUNCTION, function).all()
        triggers = connection.execute(_DESCRIBE_TRIGGERS, wanted).all()
    return [
        *(FoundTrigger(name, definition) for name, definition in functions),
        *(FoundTrigger(name, definition, _FAULTS.get(enabled)) for name, definition, enabled in triggers),
    ]


def queue_triggers(connection: Connection, namespace: Namespace) -> list[QueueTrigger]:
    """Return the triggers whose function names our queue."""
    rows = connection.execute(_WRITES_TO, {"change": _RENDERER.queue_name(namespace)})
    return [
        QueueTrigger(
            name,
            table,
            function,
            _RENDERER.statement(
                "drop_trigger", trigger=_RENDERER.name(name), table=_RENDERER.name(table, schema)
            ),
        )
        for name, schema, table, function in rows
    ]


def short_lock_wait(connection: Connection) -> AbstractContextManager[None]:
    """Set the time-out of this transaction, and put it back unless the transaction failed."""
    return setting(connection, "lock_timeout", f"{TABLE_LOCK_SECONDS}s")


def _pieces(target: TriggerTarget) -> dict[str, object]:
    function = _RENDERER.name(_function_name(target), target.namespace.schema)
    return _RENDERER.pieces(target) | {"function": function}


def _function_name(target: TriggerTarget) -> str:
    return fit_name(f"queue_{target.watched_name}_{target.table_id}", _LIMIT, limit_counts_bytes=True)


def _triggers(target: TriggerTarget) -> list[tuple[str, str]]:
    """Return each event with the quoted name of its trigger."""
    return [(event, _RENDERER.name(name)) for event, name in zip(EVENTS, trigger_names(target), strict=False)]


def _has_key(plan: TriggerPlan, row: FromClause) -> str:
    # A composite IS NOT NULL only if no field of it is NULL.
    return " AND ".join(f"{_RENDERER.expression(row.c[c.name])} IS DISTINCT FROM NULL" for c in plan.key)


def _record(plan: TriggerPlan, row: FromClause) -> str:
    return f"ROW({', '.join(_RENDERER.expression(row.c[c.name]) for c in plan.counted)})"


def _dollar_quoted(body: str) -> str:
    """Quote a body with marks that are not in it, whatever the columns are called."""
    tag = next(tag for n in count() if (tag := f"$dedup{n or ''}$") not in body)
    return f"{tag}\n{body}\n{tag}"
