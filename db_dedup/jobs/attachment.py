"""The triggers that tell us what changes in a watched table: made, checked, mended and taken away."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import TriggerPlan, TriggerTarget
from db_dedup.errors import ConfigError, DatabaseUnavailableError
from db_dedup.records import SourceTable
from db_dedup.schema.locks import schema_lock
from db_dedup.schema.tables import Namespace, Tables
from db_dedup.store.attachments import StoredAttachment, forget_changes, read_attachment, store_attachment
from db_dedup.store.clock import database_now
from db_dedup.store.inspection import check_columns, resolve_key

logger = logging.getLogger(__name__)


class AttachmentState(StrEnum):
    """How the triggers on a table stand, the worst first."""

    NOT_ATTACHED = "not attached"
    MISSING = "missing"
    DISABLED = "disabled"
    ALTERED = "altered"
    STALE = "stale"
    INTACT = "intact"


@dataclass(frozen=True)
class AttachmentReport:
    """How the triggers on a table stand, and a sentence for each difference from how they were made."""

    state: AttachmentState
    differences: tuple[str, ...] = ()


def trigger_target(namespace: Namespace, table_id: int, watched: WatchedTable) -> TriggerTarget:
    """What is enough to find and drop the triggers on a table, even if the table is gone."""
    return TriggerTarget(watched.table_name, watched.schema_name, table_id, watched.name, namespace)


def plan_triggers(
    namespace: Namespace, table_id: int, watched: WatchedTable, table: SourceTable
) -> TriggerPlan:
    """The triggers that these settings need. A condition may name any column, so that every one counts.

    Raises:
        ConfigError: it is a view, or nothing identifies a row.
    """
    if table.is_view:
        raise ConfigError(f"{table.name!r} is a view, on which no trigger sees a change: attach its tables")
    check_columns(watched, table)
    key = resolve_key(table, watched.key)
    counted = {*watched.columns, *(c.name for c in key), *(part.column for part in watched.within)}
    if watched.order:
        counted.add(watched.order)
    columns = table.columns if watched.where else tuple(c for c in table.columns if c.name in counted)
    return TriggerPlan(trigger_target(namespace, table_id, watched), key, columns)


class Attachment:
    """The triggers on one watched table, as its settings want them."""

    def __init__(self, dialect: Dialect, tables: Tables, plan: TriggerPlan) -> None:
        """Work out the statements.

        Raises:
            ConfigError: a key column whose values have no exact text.
        """
        self._dialect, self._tables, self._plan = dialect, tables, plan
        self.statements = dialect.create_triggers(plan)

    def state(self, connection: Connection) -> AttachmentReport:
        """Compare the database's catalogue with what was made, and with what the settings want."""
        stored = read_attachment(connection, self._tables, self._plan.target.table_id)
        if stored.attached_at is None:
            return AttachmentReport(AttachmentState.NOT_ATTACHED)
        found = self._dialect.describe_triggers(connection, self._plan.target)
        there = {trigger.name for trigger in found}
        missing = [name for name in self._dialect.trigger_names(self._plan.target) if name not in there]
        differences = [(AttachmentState.MISSING, f"{name} is missing") for name in missing]
        differences += [(AttachmentState.DISABLED, f"trigger {t.name} {t.fault}") for t in found if t.fault]
        planned, made = _parts(stored.trigger_digest)
        if not missing and made != self._digest_of_found(connection):
            differences.append((AttachmentState.ALTERED, "the triggers are not as they were made"))
        if planned != self._plan.digest:
            differences.append((AttachmentState.STALE, "the triggers were made for other settings"))
        if not differences:
            return AttachmentReport(AttachmentState.INTACT)
        return AttachmentReport(differences[0][0], tuple(sentence for _, sentence in differences))

    def attach(self, connection: Connection) -> list[str]:
        """Make the triggers unless they stand as they should. Gives the statements that were run.

        In a transaction of its own, which the caller commits; MySQL and MariaDB commit each statement. Where
        triggers were made, the table counts as attached from then on: changes before may have been missed.

        Raises:
            ConfigError: the triggers would have to write to another database.
            DatabaseUnavailableError: the table is busy.
        """
        target = self._plan.target
        self._refuse_other_database(connection)
        with schema_lock(connection, target.namespace):
            if self.state(connection).state is AttachmentState.INTACT:
                return []
            # First, so that where each statement commits an attempt that breaks off is seen and mended.
            self._store(connection, None)
            _run_ddl(connection, self._dialect, target, self.statements)
            self._store(connection, self._plan.digest + self._digest_of_found(connection))
        logger.info("triggers made", extra={"table": target.watched_name})
        return self.statements

    def pending(self, connection: Connection) -> list[str]:
        """The statements that `attach` would run.

        Raises:
            ConfigError: the triggers would have to write to another database.
        """
        self._refuse_other_database(connection)
        return [] if self.state(connection).state is AttachmentState.INTACT else self.statements

    def follow_settings(self, connection: Connection) -> list[str]:
        """As `attach`, but only where the table is attached and its settings count other columns by now."""
        stored = read_attachment(connection, self._tables, self._plan.target.table_id)
        if stored.attached_at is None or _parts(stored.trigger_digest)[0] == self._plan.digest:
            return []
        return self.attach(connection)

    def _refuse_other_database(self, connection: Connection) -> None:
        schema = self._plan.target.schema
        if self._dialect.capabilities.has_schemas or schema is None:
            return
        if schema != inspect(connection).default_schema_name:
            raise ConfigError(
                f"{self._plan.target.table!r} is in {schema!r}, another database than our tables: "
                f"a trigger there cannot tell us of its changes"
            )

    def _store(self, connection: Connection, digest: str | None) -> None:
        # The time counts from now on: whoever wrote before has committed, or the table were still locked.
        attachment = StoredAttachment(database_now(connection), digest)
        store_attachment(connection, self._tables, self._plan.target.table_id, attachment)

    def _digest_of_found(self, connection: Connection) -> str:
        names = self._dialect.trigger_names(self._plan.target)
        found = self._dialect.describe_triggers(connection, self._plan.target)
        ours = sorted((t.name, t.definition) for t in found if t.name in names)
        return hashlib.sha256(repr(ours).encode()).hexdigest()[:32]


def put_aside(connection: Connection, dialect: Dialect, target: TriggerTarget) -> None:
    """Drop the triggers for a moment: the table stays attached, so that `attach` makes them anew.

    Raises:
        DatabaseUnavailableError: the table is busy.
    """
    with schema_lock(connection, target.namespace):
        _run_ddl(connection, dialect, target, dialect.drop_triggers(target))


def detach(connection: Connection, dialect: Dialect, tables: Tables, target: TriggerTarget) -> int:
    """Drop the triggers on a table, even if it is gone, and forget its queue. Gives how many were queued.

    Raises:
        DatabaseUnavailableError: the table is busy.
    """
    with schema_lock(connection, target.namespace):
        _run_ddl(connection, dialect, target, dialect.drop_triggers(target))
        forgotten = forget_changes(connection, tables, target.table_id)
        store_attachment(connection, tables, target.table_id, StoredAttachment(None, None))
    logger.info("triggers dropped", extra={"table": target.watched_name, "forgotten": forgotten})
    return forgotten


def _run_ddl(
    connection: Connection, dialect: Dialect, target: TriggerTarget, statements: Iterable[str]
) -> None:
    try:
        with dialect.short_lock_wait(connection):
            for statement in statements:
                # Else a percent sign in a name would call for a value.
                connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    except SQLAlchemyError as error:
        translated = dialect.translate_error(error)
        if not translated.is_transient:
            raise
        raise DatabaseUnavailableError(
            f"table {target.table!r} is busy ({translated}): try again when no long transaction works on it"
        ) from error


def _parts(digest: str | None) -> tuple[str, str]:
    """Of the plan, and of what the database made of it."""
    digest = digest or ""
    return digest[:32], digest[32:]
