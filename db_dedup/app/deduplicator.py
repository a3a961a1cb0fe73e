"""The duplicates of one table: the Python API, which the command line calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.orm import Session

from db_dedup.app.blocking_check import BlockingCheck
from db_dedup.app.database import Database
from db_dedup.app.row_texts import RowTexts
from db_dedup.app.scan_follow_up import follow_answer
from db_dedup.app.table_access import TableAccess
from db_dedup.app.table_triggers import TableTriggers
from db_dedup.app.table_verdicts import TableVerdicts
from db_dedup.config import Settings, WatchedTable, watched_table
from db_dedup.engines.embedded.expansion import Expansion
from db_dedup.engines.embedded.explanation import Explainer
from db_dedup.engines.embedded.lookup import CheckResult, Lookup
from db_dedup.errors import ConfigError
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
    Match,
    PairLabel,
    ScanPreview,
    ScanReport,
    SourceTable,
    Verification,
)
from db_dedup.schema.views import printable
from db_dedup.store import answers, changes, watched_tables
from db_dedup.store.watched_tables import StoredTable


class Deduplicator:
    """Finds the duplicates of one table.

    Args:
        engine: an Engine, a URL, or a `Database`.
        table: the table's name; or its whole settings.
        columns: column name -> weight of its text, `Text()` or `Value()`; left out, the stored recipe counts.
        progress: told how far a scan has come.
        store: an Engine or URL of another database for our tables; the first one is then only read.
        options: any other setting of a table in `dedup.toml`, such as `preset`, `key`, `order`, `where`.
    """

    def __init__(
        self,
        engine: Engine | URL | str | Database,
        table: str | WatchedTable,
        columns: Mapping[str, object] | None = None,
        progress: Progress | None = None,
        store: Engine | URL | str | None = None,
        **options: Any,
    ) -> None:
        """Settle what is looked for, and where.

        Raises:
            ConfigError: settings that cannot be used.
        """
        if isinstance(engine, Database) and store is not None:
            raise ConfigError("a Database has its store already: write Database(engine, store=...)")
        self.database = engine if isinstance(engine, Database) else Database(engine, store=store)
        self._progress = progress or NullProgress()
        self._prepared: tuple[StoredTable, Lookup] | None = None
        self._prepared_explainer: tuple[StoredTable, Explainer] | None = None
        given: WatchedTable | None = None
        if isinstance(table, WatchedTable):
            given = table
        elif columns is not None:
            given = watched_table(table, {"columns": dict(columns), **options})
        elif options:
            raise ConfigError(f"{', '.join(options)}: settings of a table come with its columns")
        self.name = table.name if isinstance(table, WatchedTable) else table
        self._access = TableAccess(self.database, self.name, given, self._progress)

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
                context.source.check_condition(rows)
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
        database = self.database
        with database.errors_told(), database.engine.connect() as connection:
            database.require_schema_on(connection)
            self._access.find_same(connection)
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

    def check(
        self,
        record: Mapping[str, object],
        connection: Connection | Session | None = None,
        *,
        block: bool = False,
        row_key: str | None = None,
    ) -> list[Match]:
        """Stored rows that this record duplicates, nearest first.

        Args:
            record: column name -> value; what is missing counts as NULL.
            connection: read through this one, which is neither committed nor rolled back. It leads to the
                user's rows; our tables, if they are apart, are read through one of our own.
            block: until the caller's transaction ends, no other such check of the table begins; all that is
                committed by then is judged as it is now. Needs a connection, triggers and a scan.
            row_key: of the row that the record is or becomes, if known; only with `block`. It is no duplicate
                of itself, and its fingerprint is stored where it has none.

        Raises:
            TableBusyError: with `block`, others have the table for too long: roll back and try again.
        """
        return self.check_in_full(record, connection, block=block, row_key=row_key).matches

    def check_in_full(
        self,
        record: Mapping[str, object],
        connection: Connection | Session | None = None,
        *,
        block: bool = False,
        row_key: str | None = None,
    ) -> CheckResult:
        """As `check`, and whether there was too little text to judge."""
        if block:
            return self._check_blocking(record, connection, row_key)
        if row_key is not None:
            raise ConfigError("a row key is for a check that blocks: write block=True")
        with self.database.errors_told(), self._connected(connection) as (ours, theirs):
            return self._lookup(ours, theirs).check(ours, record, theirs)

    def _check_blocking(
        self, record: Mapping[str, object], given: Connection | Session | None, row_key: str | None
    ) -> CheckResult:
        if given is None:
            raise ConfigError("a check that blocks works in a transaction of yours: hand over its connection")
        if isinstance(given, Session):
            given.flush()
            given = given.connection()
        connection = given
        with self.database.errors_told():
            checker = BlockingCheck(self.database, self.name, lambda c: self._lookup(c, c))
            return checker.check(connection, record, row_key)

    def explain(self, key_a: str, key_b: str) -> Explanation:
        """Why two rows are a duplicate pair by the stored recipe, or why not, as their texts are now."""
        with self.database.errors_told(), self._connected(None) as (ours, theirs):
            return self._explainer(ours).explain(ours, key_a, key_b, theirs)

    def pairs(self, expand: bool = False, limit: int | None = None) -> Iterator[DuplicatePair]:
        """The duplicate pairs; expanded, every pair of rows that the copies and abridged groups imply."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
        return self._read_pairs(stored, expand, limit)

    def _read_pairs(self, stored: StoredTable, expand: bool, limit: int | None) -> Iterator[DuplicatePair]:
        with self.database.errors_told(), self.database.engine.connect() as connection:
            if not expand:
                yield from answers.read_pairs(connection, self.database.tables, self.name, limit)
                return
            watched, source = self._access.source(connection, stored.require_current().watched)
            with self.database.reading(connection) as rows:
                yield from islice(
                    Expansion(watched, self._access.store(stored), source).pairs(connection, rows), limit
                )

    def groups(self, limit: int | None = None) -> list[GroupSummary]:
        """The duplicate groups, the largest first."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            self._access.require_stored(connection)
            return list(answers.read_groups(connection, self.database.tables, self.name, limit))

    def members(self, group_id: str) -> list[str]:
        """The row keys of a group, the representative first."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            self._access.require_stored(connection)
            return answers.read_members(connection, self.database.tables, self.name, group_id)

    def members_of(self, group_ids: Sequence[str], each: int | None = None) -> dict[str, list[str]]:
        """As `members`, of several groups: group id -> row keys, of each group at most so many."""
        with self.database.errors_told(), self.database.engine.connect() as connection:
            self._access.require_stored(connection)
            return answers.read_members_of(connection, self.database.tables, self.name, group_ids, each)

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
        self.database.require_schema()
        with self.database.errors_told():
            with self.database.engine.connect() as connection:
                if stored := watched_tables.find_table(connection, self.database.tables, self.name):
                    stored.require_current()
                context = self._access.context(connection, self._access.settings(connection))
            verdicts = verdicts_for(context).all
            return calibrate(context, labels, verdicts, unlabelled_are_wrong=unlabelled_are_wrong)

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

    @contextmanager
    def _connected(self, given: Connection | Session | None) -> Iterator[tuple[Connection, Connection]]:
        """A connection to our tables and one to the user's rows: the given one, as far as it goes."""
        if isinstance(given, Session):
            given = given.connection()
        if given is not None and not self.database.is_apart:
            yield given, given
            return
        with self.database.engine.connect() as ours:
            if given is not None:
                yield ours, given
                return
            with self.database.reading(ours) as theirs:
                yield ours, theirs

    def _lookup(self, connection: Connection, source_connection: Connection) -> Lookup:
        """Made once, and again when a scan has switched to another recipe."""
        is_first = self._prepared is None
        stored = self._access.require_scanned(connection, check_schema=is_first).require_current()
        if self._prepared is None or not stored.is_alike(self._prepared[0]):
            watched, source = self._access.inspected(source_connection, stored.watched)
            self._prepared = stored, Lookup(watched, self._access.store(stored), source)
        return self._prepared[1]

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

    def _explainer(self, connection: Connection) -> Explainer:
        """Made once, and again when a scan has switched to another recipe."""
        stored = self._access.require_scanned(connection).require_current()
        if self._prepared_explainer is None or not stored.is_alike(self._prepared_explainer[0]):
            watched, source = self._access.source(connection, stored.watched)
            self._prepared_explainer = stored, Explainer(watched, self._access.store(stored), source)
        return self._prepared_explainer[1]


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
