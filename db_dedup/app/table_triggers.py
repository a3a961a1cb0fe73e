"""The triggers on one table: what `attach`, `detach` and `sql triggers` do."""

from collections.abc import Callable

from sqlalchemy import Connection

from db_dedup.app.database import Database
from db_dedup.config import WatchedTable
from db_dedup.errors import ConfigError, NotScannedError
from db_dedup.jobs.attachment import Attachment, AttachmentReport, plan_triggers, trigger_target
from db_dedup.jobs.trigger_removal import detach
from db_dedup.records import SourceTable
from db_dedup.store import attachments
from db_dedup.store.watched_tables import StoredTable

Resolve = Callable[[Connection], tuple[StoredTable | None, WatchedTable, SourceTable]]
"""What is stored of the table, the settings that count, and what inspection found."""


class TableTriggers:
    """Makes, checks and drops the triggers on one table.

    Raises:
        ConfigError: our tables are in another database.
    """

    def __init__(self, database: Database, resolve: Resolve) -> None:
        if database.is_apart:
            raise ConfigError(
                "our tables are in another database (store_url), where no trigger can tell us of changes: "
                "run a scan from time to time"
            )
        self._database, self._resolve = database, resolve

    def attach(self, dry_run: bool) -> list[str]:
        """Make or mend the triggers; the statements that were run, or would be."""
        database = self._database
        with database.errors_told():
            if dry_run:
                with database.engine.connect() as connection:
                    return self.attachment(connection).pending(connection)
            with database.dialect.write_transaction(database.engine) as connection:
                return self.attachment(connection, add=True).attach(connection)

    def mend(self) -> list[str]:
        """Make them again where the table is attached and they are not as they should be."""
        database = self._database
        with database.errors_told(), database.dialect.write_transaction(database.engine) as connection:
            return self.attachment(connection).mend(connection)

    def follow_settings(self) -> list[str]:
        """Make them anew where the table, which may be a view, is attached and other columns count by now."""
        database = self._database
        with database.errors_told(), database.dialect.write_transaction(database.engine) as connection:
            stored, _, _ = self._resolve(connection)
            if stored is None or stored.attached_at is None:
                return []
            return self.attachment(connection).follow_settings(connection)

    def detach(self, find_stored: Callable[[Connection], StoredTable]) -> int:
        """Drop the triggers and forget the queue; how many changes were in it."""
        database = self._database
        with database.errors_told(), database.dialect.write_transaction(database.engine) as connection:
            database.require_schema_on(connection)
            stored = find_stored(connection)
            target = trigger_target(database.namespace, stored.id, stored.watched)
            return detach(connection, database.dialect, database.tables, target)

    def state(self) -> AttachmentReport:
        """How they stand."""
        with self._database.errors_told(), self._database.engine.connect() as connection:
            return self.attachment(connection).state(connection)

    def statements(self) -> list[str]:
        """The DDL that makes them.

        Raises:
            NotScannedError: the table has no number yet under which its triggers could queue.
        """
        with self._database.errors_told(), self._database.engine.connect() as connection:
            statements = self.attachment(connection).statements
            stored, watched, _ = self._resolve(connection)
            if stored is None:
                raise NotScannedError(
                    f"{watched.name!r} is not watched yet, so its triggers have no number to queue under: "
                    f"run `db-dedup scan {watched.name}` first"
                )
            return statements

    def attachment(self, connection: Connection, add: bool = False) -> Attachment:
        """The triggers as the settings want them; with `add` the table is stored if it is not yet."""
        database = self._database
        database.require_schema_on(connection)
        stored, watched, table = self._resolve(connection)
        # Planned before anything is stored: a table that cannot be attached leaves nothing behind.
        plan = plan_triggers(database.namespace, stored.id if stored else 0, watched, table)
        if add:
            stored = attachments.add_unscanned(connection, database.tables, watched)
            plan = plan_triggers(database.namespace, stored.id, watched, table)
        return Attachment(database.dialect, database.tables, plan, stored.recipe if stored else None)
