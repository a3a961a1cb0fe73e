"""The triggers that queue the changes of a watched table: made, checked and repaired."""

import hashlib
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.triggers import FoundTrigger, TriggerPlan, TriggerTarget
from db_dedup.errors import ConfigError, DatabaseError, DatabaseUnavailableError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.lock_waits import run_ddl
from db_dedup.records import SourceTable
from db_dedup.records.names import Namespace
from db_dedup.schema.tables import Tables
from db_dedup.store.attachments import (
    StoredAttachment,
    read_attachment,
    store_attachment,
    store_attachment_for,
)
from db_dedup.store.clock import database_now
from db_dedup.store.inspection import check_columns, resolve_key
from db_dedup.translation import Phrase

logger = logging.getLogger(__name__)


class AttachmentState(StrEnum):
    """The state of the triggers on a table, the worst first."""

    NOT_ATTACHED = "not attached"
    MISSING = "missing"
    DISABLED = "disabled"
    UNKNOWN = "unknown"
    ALTERED = "altered"
    STALE = "stale"
    INTACT = "intact"


@dataclass(frozen=True)
class AttachmentReport:
    """The state of the triggers on a table, and a sentence for each difference from how they were made."""

    state: AttachmentState
    differences: tuple[str, ...] = ()


Difference = tuple[AttachmentState, str]
"""What is not as it should be, and a sentence about it."""


def trigger_target(namespace: Namespace, table_id: int, watched: WatchedTable) -> TriggerTarget:
    """Return what is needed to find and drop the triggers on a table, even if the table is gone."""
    return TriggerTarget(watched.table_name, watched.schema_name, table_id, watched.name, namespace)


def plan_triggers(
    namespace: Namespace, table_id: int, watched: WatchedTable, table: SourceTable
) -> TriggerPlan:
    """Return the triggers that these settings need; a `where` may name any column, so all columns count.

    Raises:
        ConfigError: the table is a view, or has no key.
    """
    if table.is_view:
        raise ConfigError(
            "{table!r} is a view, on which no trigger sees a change: attach its tables", table=table.name
        )
    check_columns(watched, table)
    key = resolve_key(table, watched.key)
    counted = {*watched.columns, *(c.name for c in key), *(part.column for part in watched.within)}
    if watched.order:
        counted.add(watched.order)
    columns = table.columns if watched.where else tuple(c for c in table.columns if c.name in counted)
    return TriggerPlan(trigger_target(namespace, table_id, watched), key, columns)


class Attachment:
    """The triggers on one watched table, as its settings need them."""

    def __init__(
        self, dialect: Dialect, tables: Tables, plan: TriggerPlan, recipe: int | None = None
    ) -> None:
        """Work out the statements.

        Args:
            dialect: of the database.
            tables: ours.
            plan: what the settings need.
            recipe: the number of the recipe whose settings these are; None before the first scan.

        Raises:
            ConfigError: a key column whose values have no exact text.
        """
        self._dialect, self._tables, self._plan, self._recipe = dialect, tables, plan, recipe
        self.statements = dialect.create_triggers(plan)

    def state(self, connection: Connection) -> AttachmentReport:
        """Compare the database's catalogue with what was made, and with what the settings need."""
        stored = read_attachment(connection, self._tables, self._plan.target.table_id)
        if stored.attached_at is None:
            return AttachmentReport(AttachmentState.NOT_ATTACHED)
        target, digest = self._plan.target, stored.trigger_digest
        differences = catalogue_differences(connection, self._dialect, target, digest)
        if digest is not None and _parts(digest)[0] != self._plan.digest:
            differences.append((AttachmentState.STALE, Phrase("the triggers were made for other settings")))
        if not differences:
            return AttachmentReport(AttachmentState.INTACT)
        return AttachmentReport(differences[0][0], tuple(sentence for _, sentence in differences))

    def attach(self, connection: Connection) -> list[str]:
        """Make the triggers unless they are as they should be; return the statements that were run.

        In a transaction of its own, which the caller commits; MySQL and MariaDB commit each statement. Where
        triggers were made, the table counts as attached from then on: changes before may have been missed.

        Raises:
            ConfigError: the triggers would have to write to another database, or writes to the table would
                fail.
            DatabaseError: this account has no right to see the triggers.
            DatabaseUnavailableError: the table is busy, or a scan has just switched to other settings.
        """
        target = self._plan.target
        self._refuse_unusable(connection)
        with self._dialect.schema_lock(connection, target.namespace):
            found = self.state(connection)
            if found.state is AttachmentState.INTACT:
                return []
            if found.state is AttachmentState.UNKNOWN:
                raise DatabaseError(found.differences[0])
            # First: where each statement commits by itself, an interrupted attempt is repaired later.
            self._store(connection, None)
            try:
                run_ddl(connection, self._dialect, target.table, self.statements)
            except (SQLAlchemyError, DatabaseUnavailableError):
                if found.state is AttachmentState.NOT_ATTACHED and self._dialect.capabilities.commits_ddl:
                    self._undo(connection)
                raise
            made = _digest_of(self._dialect, target, self._dialect.describe_triggers(connection, target))
            self._store(connection, self._plan.digest + made)
        logger.info("triggers made", extra={"table": target.watched_name})
        return self.statements

    def pending(self, connection: Connection) -> list[str]:
        """Return the statements that `attach` would run.

        Raises:
            ConfigError: as for `attach`.
        """
        self._refuse_unusable(connection)
        return [] if self.state(connection).state is AttachmentState.INTACT else self.statements

    def mend(self, connection: Connection) -> list[str]:
        """Do what `attach` does, but not on a table that was detached meanwhile."""
        with self._dialect.schema_lock(connection, self._plan.target.namespace):
            stored = read_attachment(connection, self._tables, self._plan.target.table_id)
            return [] if stored.attached_at is None else self.attach(connection)

    def follow_settings(self, connection: Connection) -> list[str]:
        """Do what `mend` does, but only where the triggers were made for other settings."""
        stored = read_attachment(connection, self._tables, self._plan.target.table_id)
        if _parts(stored.trigger_digest)[0] == self._plan.digest:
            return []
        return self.mend(connection)

    def _refuse_unusable(self, connection: Connection) -> None:
        self._refuse_other_database(connection)
        fault = self._dialect.fault_of_triggers(connection, self._plan.target)
        if fault:
            raise ConfigError(fault)

    def _refuse_other_database(self, connection: Connection) -> None:
        schema = self._plan.target.schema
        if self._dialect.capabilities.has_schemas or schema is None:
            return
        if schema != inspect(connection).default_schema_name:
            raise ConfigError(
                "{table!r} is in {schema!r}, another database than our tables: "
                "a trigger there cannot write into our queue. Put our tables into {schema!r} "
                "(`url` under [database]), or run a scan from time to time",
                table=self._plan.target.table,
                schema=schema,
            )

    def _undo(self, connection: Connection) -> None:
        """Store again that the table is not attached, if the server has refused the first trigger."""
        target = self._plan.target
        with suppress(SQLAlchemyError):  # the connection may be lost
            if not self._dialect.describe_triggers(connection, target):
                store_attachment(connection, self._tables, target.table_id, StoredAttachment(None, None))
                connection.exec_driver_sql("COMMIT")

    def _store(self, connection: Connection, digest: str | None) -> None:
        # Taken now: the table is locked, so every transaction that wrote to it before has ended.
        target, attachment = self._plan.target, StoredAttachment(database_now(connection), digest)
        if not store_attachment_for(connection, self._tables, target.table_id, attachment, self._recipe):
            raise DatabaseUnavailableError(
                "a scan has just switched {name!r} to other settings: try again", name=target.watched_name
            )


def catalogue_differences(
    connection: Connection, dialect: Dialect, target: TriggerTarget, trigger_digest: str | None
) -> list[Difference]:
    """Compare the triggers on an attached table with what is stored of them, the worst first.

    Takes a look-up in the catalogue or two, and nothing of the user's table.
    """
    found = dialect.describe_triggers(connection, target)
    there = {trigger.name for trigger in found}
    missing = [name for name in dialect.trigger_names(target) if name not in there]
    differences: list[tuple[AttachmentState, str]] = [
        (AttachmentState.MISSING, Phrase("{name} is missing", name=name)) for name in missing
    ]
    differences += [
        (AttachmentState.DISABLED, Phrase("trigger {name} {fault}", name=t.name, fault=t.fault))
        for t in found
        if t.fault
    ]
    hidden = next((trigger.hidden for trigger in found if trigger.hidden), None)
    if hidden is not None:
        differences.append((AttachmentState.UNKNOWN, hidden))
    elif trigger_digest is None:
        differences.append((AttachmentState.STALE, Phrase("the triggers were made for other settings")))
    elif not missing and _parts(trigger_digest)[1] != _digest_of(dialect, target, found):
        differences.append((AttachmentState.ALTERED, Phrase("the triggers are not as they were made")))
    return differences


def mark_stale(connection: Connection, context: JobContext, table_id: int) -> None:
    """Mark the triggers on a table unless they were planned for the settings of the job.

    In the transaction that switches to these settings. Whoever dies before the triggers are made again leaves
    triggers that miss changes; by this mark the worker and a check that blocks notice.
    """
    stored = read_attachment(connection, context.tables, table_id)
    if stored.attached_at is None:
        return
    try:
        plan = plan_triggers(context.tables.namespace, table_id, context.watched, context.source.table)
    except ConfigError:  # a view has taken the table's place
        planned = None
    else:
        planned = plan.digest
    if _parts(stored.trigger_digest)[0] != planned:
        store_attachment(connection, context.tables, table_id, StoredAttachment(stored.attached_at, None))


def _digest_of(dialect: Dialect, target: TriggerTarget, found: Iterable[FoundTrigger]) -> str:
    """Return 128 bits of a digest of the trigger definitions that the database stores."""
    names = dialect.trigger_names(target)
    ours = sorted((t.name, t.definition) for t in found if t.name in names)
    return hashlib.sha256(repr(ours).encode()).hexdigest()[:32]


def _parts(digest: str | None) -> tuple[str, str]:
    """Split a digest into that of the plan and that of the definitions in the database."""
    digest = digest or ""
    return digest[:32], digest[32:]
