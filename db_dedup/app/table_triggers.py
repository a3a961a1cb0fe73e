"""The triggers on one table: the work of `attach`, `detach` and `sql triggers`."""

from collections.abc import Callable

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.config import WatchedTable
from db_dedup.errors import ConfigError, NotScannedError
from db_dedup.jobs.objects.attachment import Attachment, AttachmentReport, plan_triggers, trigger_target
from db_dedup.jobs.objects.trigger_removal import detach
from db_dedup.records import SourceTable
from db_dedup.store import attachments
from db_dedup.store.watched_tables import StoredTable

Resolve = Callable[[Connection], tuple[StoredTable | None, WatchedTable, SourceTable]]
"""Finds (what is stored of the table, the settings to use, what inspection found)."""


class TableTriggers:
    """Makes, checks and drops the triggers on one table.

    Raises:
        ConfigError: our tables are in another database.
    """

    def __init__(self, database: Database, resolve: Resolve) -> None:
        if database.is_apart:
            raise ConfigError(
                "our tables are in another database (store_url), where no trigger can report changes: "
                "run a scan from time to time"
            )
        self._database, self._resolve = database, resolve

    def attach(self, dry_run: bool) -> list[str]:
        """Make or repair the triggers; return the statements that were run, or with `dry_run` would be."""
        database = self._database
        with database.translate_driver_errors():
            if dry_run:
                with database.engine.connect() as connection:
                    return self.attachment(connection).pending(connection)
            with database.dialect.write_transaction(database.engine) as connection:
                return self.attachment(connection, add=True).attach(connection)

    def mend(self) -> list[str]:
        """Make the triggers again if the table is attached and they are not as they should be."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as connection,
        ):
            return self.attachment(connection).mend(connection)

    def follow_settings(self) -> list[str]:
        """Make the triggers again if the table (or view) is attached and other columns are watched now."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as connection,
        ):
            stored, _, _ = self._resolve(connection)
            if stored is None or stored.attached_at is None:
                return []
            return self.attachment(connection).follow_settings(connection)

    def detach(self, find_stored: Callable[[Connection], StoredTable]) -> int:
        """Drop the triggers and delete the queued changes; return their number."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as connection,
        ):
            database.require_schema_on(connection)
            stored = find_stored(connection)
            target = trigger_target(database.namespace, stored.id, stored.watched)
            return detach(connection, database.dialect, database.tables, target)

    def state(self) -> AttachmentReport:
        """Return the state of the triggers."""
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            return self.attachment(connection).state(connection)

    def statements(self) -> list[str]:
        """Return the DDL of the triggers.

        Raises:
            NotScannedError: the table is not stored yet, so it has no number for its triggers to write.
        """
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            statements = self.attachment(connection).statements
            stored, watched, _ = self._resolve(connection)
            if stored is None:
                raise NotScannedError(
                    "{name!r} is not watched yet, so its triggers have no number to queue under: "
                    "run `db-dedup scan {name}` first",
                    name=watched.name,
                )
            return statements

    def attachment(self, connection: Connection, add: bool = False) -> Attachment:
        """Return the triggers that the settings need; with `add`, store the table if it is not stored yet."""
        database = self._database
        database.require_schema_on(connection)
        stored, watched, table = self._resolve(connection)
        # The plan comes first: for a table that cannot be attached it fails, and nothing is stored.
        plan = plan_triggers(database.namespace, stored.id if stored else 0, watched, table)
        if add:
            stored = attachments.add_unscanned(connection, database.tables, watched)
            plan = plan_triggers(database.namespace, stored.id, watched, table)
        return Attachment(database.dialect, database.tables, plan, stored.recipe if stored else None)
