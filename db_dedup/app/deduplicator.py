"""The duplicates of one table: the Python API, which the command line calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine

from db_dedup.app.arguments import (
    iterable_of,
    labels_of,
    require,
    require_count,
    require_limit,
    require_text,
)
from db_dedup.app.checks import Checks
from db_dedup.app.database import Database
from db_dedup.app.row_texts import RowTexts
from db_dedup.app.scan_follow_up import follow_answer
from db_dedup.app.table_access import TableAccess
from db_dedup.app.table_answers import TableAnswers
from db_dedup.app.table_checks import TableChecks
from db_dedup.app.table_triggers import TableTriggers
from db_dedup.app.table_verdicts import TableVerdicts
from db_dedup.config import Settings, WatchedTable, watched_table
from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.jobs.attachment import AttachmentReport
from db_dedup.jobs.calibration import calibrate
from db_dedup.jobs.change_worker import BATCH_CHANGES, TableWorker, WorkerTable
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.full_scan import FullScan
from db_dedup.jobs.table_view import TableView
from db_dedup.jobs.verdicts import verdicts_for
from db_dedup.jobs.verification import preview, verify
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import (
    Calibration,
    DuplicatePair,
    Explanation,
    GroupSummary,
    PairLabel,
    RowKey,
    ScanPreview,
    ScanReport,
    SourceTable,
    Verification,
)
from db_dedup.schema.views import printable
from db_dedup.store import changes, watched_tables
from db_dedup.store.watched_tables import StoredTable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class Deduplicator(Checks):
    """Finds the duplicates of one table.

    Args:
        engine: an Engine, a URL, or a `Database`. Of an AsyncEngine only the URL is taken, see `Database`.
        table: the table's name; or its whole settings.
        columns: column name -> weight of its text, `Text()` or `Value()`; left out, the stored recipe counts.
        progress: told how far a scan has come.
        store: an Engine or URL of another database for our tables; the first one is then only read.
        options: any other setting of a table in `dedup.toml`, such as `preset`, `key`, `order`, `where`.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine | URL | str | Database,
        table: str | WatchedTable,
        columns: Mapping[str, object] | None = None,
        progress: Progress | None = None,
        store: Engine | AsyncEngine | URL | str | None = None,
        **options: Any,
    ) -> None:
        """Settle what is looked for, and where.

        Raises:
            ConfigError: settings that cannot be used.
            InvalidArgumentError: an argument is not what it should be.
        """
        if isinstance(engine, Database) and store is not None:
            raise ConfigError("a Database has its store already: write Database(engine, store=...)")
        for member in ("start", "advance", "finish") if progress is not None else ():
            require(getattr(progress, member, None), Callable, "progress", f"an object with {member}()")
        self.database = engine if isinstance(engine, Database) else Database(engine, store=store)
        self._progress = progress or NullProgress()
        given = _given_settings(table, columns, options)
        self.name = table.name if isinstance(table, WatchedTable) else table
        self._access = TableAccess(self.database, self.name, given, self._progress)
        super().__init__(TableChecks(self.database, self._access, self.name))
        self._answers = TableAnswers(self.database, self._access, self.name)

    def upgrade(self) -> str:
        """Make our tables in the database, or bring them up to date."""
        return self.database.upgrade()

    def scan(self, afresh: bool = False) -> ScanReport:
        """Find every duplicate of the table and switch the views to the new answer.

        Args:
            afresh: segment every text anew, also where the row has not changed since it was stored.

        Raises:
            DatabaseError: the scan has failed; or it has finished and switched the answer, but the table's
                triggers or view could not be made again, as the message then says.
        """
        database = self.database
        with database.errors_told():
            context = self._context_to_scan()
            report = FullScan(context, afresh=afresh).run()
            if not database.is_apart:
                follow_answer(database, context, self._triggers().follow_settings)
        return report

    def require_scannable(self) -> None:
        """Raise the error with which a scan would end before it reads a row."""
        with self.database.errors_told():
            self._context_to_scan()

    def _context_to_scan(self) -> JobContext:
        self.database.require_schema()
        with self.database.engine.connect() as connection:
            context = self._access.context(connection, self._access.settings(connection))
            with self.database.reading(connection) as rows:
                context.source.check_settings(rows)
        return context

    def preview(self) -> ScanPreview:
        """What a scan by the given settings would find, and how it would change the stored answer; nothing is
        written, and our tables need not be there."""
        database = self.database
        with database.errors_told():
            with database.engine.connect() as connection:
                if self._access.given is not None and not database.is_installed(connection):
                    stored, watched = None, self._access.given
                else:
                    database.require_schema_on(connection)
                    stored = watched_tables.find_table(connection, database.tables, self.name)
                    watched = self._access.settings(connection)
                context = self._access.context(connection, watched)
            return preview(context, stored)

    def verify(self) -> Verification:
        """How the stored answer differs from a fresh full scan by the stored recipe, and what of ours is not
        as it was made; nothing is written."""
        with self.database.errors_told():
            with self.database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                context = self._access.context(connection, stored.watched)
            return verify(context, stored)

    def worker(self, batch_changes: int = BATCH_CHANGES) -> TableWorker:
        """What handles the changes that the triggers queue, by the stored recipe.

        Raises:
            RecipeDiffersError: the given settings are others.
        """
        require_count(batch_changes, "batch_changes", 1)
        database = self.database
        with database.errors_told(), database.engine.connect() as connection:
            database.require_schema_on(connection)
            self._access.source(connection, self._access.find_same(connection).watched)
        # Whoever scans by other settings while the worker runs must not have them undone by it.
        as_stored = Deduplicator(database, self.name, progress=self._progress)
        return TableWorker(
            WorkerTable(
                self.name,
                database.engine,
                database.dialect,
                database.tables,
                lambda connection, stored: self._access.context(connection, stored.watched),
                as_stored.scan,
                as_stored.trigger_state,
                as_stored._triggers().mend,
            ),
            batch_changes,
        )

    def retry(self) -> int:
        """Queue the changes that were given up once more. Gives how many they were."""
        database = self.database
        with database.errors_told(), database.dialect.write_transaction(database.engine) as connection:
            database.require_schema_on(connection)
            table_id = self._access.find_stored(connection).id
            return changes.retry_dead(connection, database.dialect, database.tables, table_id)

    def explain(self, key_a: RowKey, key_b: RowKey) -> Explanation:
        """Why two rows are a duplicate pair by the stored recipe, or why not, as their texts are now."""
        return self._answers.explain(key_a, key_b)

    def pairs(self, expand: bool = False, limit: int | None = None) -> Iterator[DuplicatePair]:
        """The duplicate pairs; expanded, every pair of rows that the copies and abridged groups imply."""
        require_limit(limit)
        return self._answers.pairs(expand, limit)

    def groups(self, limit: int | None = None) -> list[GroupSummary]:
        """The duplicate groups, the largest first."""
        require_limit(limit)
        return self._answers.groups(limit)

    def members(self, group_id: RowKey) -> list[str]:
        """The row keys of a group, the representative first; none where there is no such group."""
        return self._answers.members(group_id)

    def members_of(self, group_ids: Iterable[RowKey], each: int | None = None) -> dict[str, list[str]]:
        """As `members`, of several groups: group id -> row keys, of each group at most so many."""
        require_limit(each, "each")
        return self._answers.members_of(iterable_of(group_ids, "group_ids", "group ids"), each)

    def texts(self) -> RowTexts:
        """A reader of the watched columns, for rows that pairs and groups name by their keys."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            _, source = self._access.source(connection, stored.watched)
        return RowTexts(self.database, source, self._access.store(stored))

    def verdicts(self) -> TableVerdicts:
        """What people say of pairs; a rejected one stays rejected until either text changes."""
        return TableVerdicts(self.database, self._access, self.name)

    def calibrate(
        self, labels: Iterable[PairLabel] | None = None, *, unlabelled_are_wrong: bool = False
    ) -> Calibration:
        """What labelled pairs say of the settings, and which others they speak for; nothing is written.

        Args:
            labels: left out, the verdicts that were given count.
            unlabelled_are_wrong: the labels name every duplicate that there is.

        Raises:
            ConfigError: no labelled duplicate is among the rows.
        """
        given = None if labels is None else labels_of(labels)
        self.database.require_schema()
        with self.database.errors_told():
            with self.database.engine.connect() as connection:
                if stored := watched_tables.find_table(connection, self.database.tables, self.name):
                    stored.require_current()
                context = self._access.context(connection, self._access.settings(connection))
                texts = None if given is None else self._access.labels(connection, given)
            verdicts = verdicts_for(context).all
            return calibrate(context, texts, verdicts, unlabelled_are_wrong=unlabelled_are_wrong)

    def attach(self, dry_run: bool = False) -> list[str]:
        """Make triggers on the table that queue its changes, or mend them.

        Args:
            dry_run: do nothing.

        Returns:
            The statements that were run, or would be; none where the triggers stand as they should.
        """
        return self._triggers().attach(dry_run)

    def detach(self) -> int:
        """Drop the triggers, also if the table is gone, and forget its queue. Gives how many were queued."""
        return self._triggers().detach(self._access.find_stored)

    def trigger_state(self) -> AttachmentReport:
        """Whether the triggers stand as they were made, and as the settings want them."""
        return self._triggers().state()

    def trigger_statements(self) -> list[str]:
        """The DDL of this table's triggers, as `attach` would run it on a table that has none."""
        return self._triggers().statements()

    def view_statements(self) -> list[str]:
        """The DDL of this table's view, as a scan would run it."""
        if self.database.is_apart:
            raise ConfigError("the table has no view: our tables are in another database")
        with self.database.errors_told(), self.database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            _, source = self._access.source(connection, self._access.given or stored.watched)
            view = TableView(self.database.dialect, self.database.tables, source)
            return [f"{printable(s, connection.dialect)};" for s in view.statements(stored)]

    def _triggers(self) -> TableTriggers:
        return TableTriggers(self.database, self._to_attach)

    def _to_attach(self, connection: Connection) -> tuple[StoredTable | None, WatchedTable, SourceTable]:
        """The recipe that serves decides; before the first scan, the given settings."""
        stored = watched_tables.find_table(connection, self.database.tables, self.name)
        if stored is not None and stored.recipe is not None:
            watched = self._access.require_scanned(connection).watched
        else:
            watched = self._access.settings(connection)
        watched, source = self._access.source(connection, watched)
        return stored, watched, source.table


def _given_settings(
    table: str | WatchedTable, columns: Mapping[str, object] | None, options: Mapping[str, object]
) -> WatchedTable | None:
    """The settings that a caller gives; None where the stored ones count."""
    if isinstance(table, WatchedTable):
        if columns is not None or options:
            raise InvalidArgumentError("a WatchedTable has its settings already: give no columns and options")
        return table
    require_text(table, "table")
    if columns is None:
        if options:
            raise ConfigError(f"{', '.join(options)}: settings of a table come with its columns")
        return None
    require(columns, Mapping, "columns", 'a dict of column name to its settings, as {"title": Text()}')
    return watched_table(table, {"columns": dict(columns), **options})


def open_deduplicator(
    url: str,
    settings: Settings | None,
    table: str,
    progress: Progress | None = None,
    store: str | None = None,
) -> Deduplicator:
    """The table as the settings file says, or as it is stored where there is no file."""
    if settings is None:
        return Deduplicator(Database(url, store=store), table, progress=progress)
    database = Database(url, settings.schema_name, settings.prefix, store=store)
    return Deduplicator(database, settings.watched(table), progress=progress)
