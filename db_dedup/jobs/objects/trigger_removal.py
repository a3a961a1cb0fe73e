"""Dropping our triggers from the user's tables: all of them, or none.

A trigger that is left when our tables are gone makes every write of the host application fail. So nothing is
dropped if one trigger would be left.
"""

import logging
from collections.abc import Collection, Sequence
from typing import NoReturn

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import QueueTrigger, TriggerTarget
from db_dedup.errors import DatabaseError
from db_dedup.jobs.objects.attachment import trigger_target
from db_dedup.jobs.objects.lock_waits import run_ddl, short_wait
from db_dedup.records.names import Namespace
from db_dedup.schema.tables import Tables
from db_dedup.store import watched_tables
from db_dedup.store.attachments import StoredAttachment, forget_changes, store_attachment
from db_dedup.translation import Phrase

logger = logging.getLogger(__name__)


def watched_targets(connection: Connection, tables: Tables) -> list[TriggerTarget]:
    """Return where our triggers may be: on every watched table, attached or not."""
    watched = tables.watched_table
    if not inspect(connection).has_table(watched.name, schema=watched.schema):
        return []
    stored = watched_tables.list_tables(connection, tables)
    return [trigger_target(tables.namespace, s.id, s.watched) for s in stored]


def lock_watched(
    connection: Connection, dialect: Dialect, tables: Tables, table_ids: Collection[int]
) -> None:
    """Lock the rows of watched tables before DDL on the tables themselves.

    Raises:
        DatabaseUnavailableError: a scan, the worker or a check that blocks holds one of them.
    """
    if table_ids:
        with short_wait(connection, dialect, Phrase("one of our tables or views")):
            watched_tables.lock_rows(connection, tables, table_ids)


def removable_triggers(
    connection: Connection, dialect: Dialect, namespace: Namespace, targets: Sequence[TriggerTarget]
) -> list[str]:
    """Return the names of our triggers on these tables, which must be all watched tables.

    Where each DROP is committed at once, whatever prevents one must be known before the first.

    Raises:
        DatabaseError: this account may not drop one, or a trigger of no watched table writes into our queue.
    """
    found = dict.fromkeys(name for target in targets for name in _require_right(connection, dialect, target))
    ours = {name for target in targets for name in dialect.trigger_names(target)}
    for trigger in dialect.queue_triggers(connection, namespace):
        if not {trigger.name, trigger.function} & ours:
            _refuse_other(trigger)
        found[trigger.name] = None  # also on a table that was renamed
    return list(found)


def remove_triggers(
    connection: Connection, dialect: Dialect, tables: Tables, targets: Sequence[TriggerTarget]
) -> list[str]:
    """Drop our triggers on these tables, which must be all watched tables; return their names.

    Raises:
        DatabaseError: one would be left; nothing has been dropped then.
        DatabaseUnavailableError: a table is busy, or its row in our tables.
    """
    names = removable_triggers(connection, dialect, tables.namespace, targets)
    lock_watched(connection, dialect, tables, [target.table_id for target in targets])
    for target in targets:
        put_aside(connection, dialect, target)
    return names


def put_aside(connection: Connection, dialect: Dialect, target: TriggerTarget) -> None:
    """Drop the triggers on a table; the record of them stays, so that `attach` makes them again.

    Raises:
        DatabaseError: this account may not drop them.
        DatabaseUnavailableError: the table is busy.
    """
    statements = dialect.drop_triggers(target)
    with dialect.schema_lock(connection, target.namespace):
        try:
            run_ddl(connection, dialect, target.table, statements)
        except SQLAlchemyError as error:
            reason = dialect.translate_error(error)
            if reason.is_transient:  # the connection was lost
                raise
            raise DatabaseError(
                "the triggers on {table!r} cannot be dropped ({reason}): "
                "let an account that may run {statements}",
                table=target.table,
                reason=reason,
                statements="; ".join(statements),
            ) from error


def detach(
    connection: Connection,
    dialect: Dialect,
    tables: Tables,
    target: TriggerTarget,
) -> int:
    """Drop the triggers on a table, even if it is gone, and forget its queue. Return how many were queued.

    Raises:
        DatabaseError: one would be left.
        DatabaseUnavailableError: the table is busy, or its row in our tables.
    """
    _require_right(connection, dialect, target)
    known = watched_targets(connection, tables)  # one may be the same table under another name
    ours = {name for other in known for name in dialect.trigger_names(other)}
    for trigger in dialect.queue_triggers(connection, target.namespace):
        if trigger.table == target.table and not {trigger.name, trigger.function} & ours:
            _refuse_other(trigger)
    with dialect.schema_lock(connection, target.namespace):
        lock_watched(connection, dialect, tables, [target.table_id])
        put_aside(connection, dialect, target)
        forgotten = forget_changes(connection, tables, target.table_id)
        store_attachment(connection, tables, target.table_id, StoredAttachment(None, None))
    logger.info("triggers dropped", extra={"table": target.watched_name, "forgotten": forgotten})
    return forgotten


def _require_right(connection: Connection, dialect: Dialect, target: TriggerTarget) -> list[str]:
    """Return the names of our triggers on a table."""
    missing = dialect.missing_right_to_drop(connection, target)
    if missing:
        raise DatabaseError(
            "the triggers on {table!r} cannot be dropped: {missing}", table=target.table, missing=missing
        )
    names = dialect.trigger_names(target)
    return [t.name for t in dialect.describe_triggers(connection, target) if t.name in names]


def _refuse_other(trigger: QueueTrigger) -> NoReturn:
    raise DatabaseError(
        "the trigger {trigger!r} on {table!r} writes into our queue and belongs to no watched table: "
        "every write to {table!r} would fail without the queue. Drop it first: {drop}",
        trigger=trigger.name,
        table=trigger.table,
        drop=trigger.drop,
    )
