"""The duplicates of one table: the Python API, which the command line calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine

from db_dedup.app.arguments import (
    given_settings,
    iterable_of,
    kinds_of,
    require,
    require_count,
    require_limit,
)
from db_dedup.app.checks import Checks
from db_dedup.app.database import Database
from db_dedup.app.engines import DEFAULT_ENGINE, find_engine
from db_dedup.app.row_texts import RowTexts
from db_dedup.app.scan_follow_up import follow_answer
from db_dedup.app.scan_seconds import StepTimer
from db_dedup.app.table_access import TableAccess
from db_dedup.app.table_answers import TableAnswers
from db_dedup.app.table_checks import TableChecks
from db_dedup.app.table_labels import TableLabels
from db_dedup.app.table_triggers import TableTriggers
from db_dedup.config import EngineSettings, Settings, WatchedTable
from db_dedup.errors import ConfigError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.attachment import AttachmentReport
from db_dedup.jobs.objects.table_view import TableView
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES
from db_dedup.jobs.worker.worker_table import CACHE_MB, WorkerTable
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import (
    Calibration,
    Comparison,
    DuplicatePair,
    Explanation,
    FrameExample,
    GroupSummary,
    PairLabel,
    RowKey,
    ScanPreview,
    ScanReport,
    SourceTable,
    Verification,
)
from db_dedup.records.group_history import GroupChange, GroupHistory
from db_dedup.records.kinds import Kind, PairFilter
from db_dedup.records.pair_columns import PairColumns
from db_dedup.schema.views import printable
from db_dedup.store import changes, watched_tables
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from db_dedup.app.table_judging import TableJudging
    from db_dedup.jobs.worker.table_worker import TableWorker
    from db_dedup.methods.plan import ComparisonPlan


class Deduplicator(Checks):
    """Finds the duplicates of one table.

    Args:
        engine: an Engine, a URL, or a `Database`. Of an AsyncEngine only the URL is used, see `Database`.
        table: the table's name; or its whole settings.
        columns: column name -> weight of its text, `Text()` or `Value()`; if left out, the stored recipe is
            used.
        progress: is called at each step of a scan.
        store: an Engine or URL of another database for our tables; the user's database is then only read.
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
        """Check the arguments; no query is run.

        Raises:
            ConfigError: settings that cannot be used.
            InvalidArgumentError: an argument is not what it should be.
        """
        if isinstance(engine, Database) and store is not None:
            raise ConfigError("a Database has its store already: write Database(engine, store=...)")
        for member in ("start", "advance", "finish") if progress is not None else ():
            wanted = Phrase("an object with {member}()", member=member)
            require(getattr(progress, member, None), Callable, "progress", wanted)
        self.database = engine if isinstance(engine, Database) else Database(engine, store=store)
        self._progress = progress or NullProgress()
        given = given_settings(table, columns, options)
        self.name = table.name if isinstance(table, WatchedTable) else table
        self._access = TableAccess(self.database, self.name, given, self._progress)
        super().__init__(TableChecks(self.database, self._access, self.name))
        self._answers = TableAnswers(self.database, self._access, self.name)

    def upgrade(self) -> str:
        """Make our tables in the database, or update them; return their revision."""
        return self.database.upgrade()

    def scan(self, rebuild: bool = False, engine: EngineSettings | None = None) -> ScanReport:
        """Find every duplicate of the table and switch the views to the new answer.

        Args:
            rebuild: reuse nothing that is stored: segment every text, also of rows that have not changed.
            engine: which engine scans, and its settings; the embedded one if left out.

        Raises:
            ConfigError: the engine cannot be used by these settings.
            DatabaseError: the scan has failed. Or it has finished and switched the answer, but the triggers
                or the view of the table could not be made again: then the message says so.
        """
        from db_dedup.jobs.scan.full_scan import FullScan  # noqa: PLC0415 - `check` need not load it

        database, timer = self.database, StepTimer(self._progress)
        with database.translate_driver_errors():
            context = self._context_to_scan()
            if engine is not None:
                context = replace(context, matching_engine=find_engine(engine))
            report = FullScan(replace(context, progress=timer), rebuild=rebuild).run()
            if not database.is_apart:
                follow_answer(database, context, self._triggers().follow_settings)
        return replace(report, seconds=timer.seconds(), parts=timer.parts())

    def require_scannable(self) -> None:
        """Raise the error with which a scan would end before it reads a row."""
        with self.database.translate_driver_errors():
            self._context_to_scan()

    def _context_to_scan(self) -> JobContext:
        self.database.require_schema()
        with self.database.engine.connect() as connection:
            context = self._access.context(connection, self._access.settings(connection))
            with self.database.reading(connection) as rows:
                context.source.check_settings(rows)
        return context

    def preview(self) -> ScanPreview:
        """Return what a scan by the given settings would find, and how it would change the stored answer.

        Nothing is written, and our tables need not exist.
        """
        from db_dedup.jobs.verify.verification import preview  # noqa: PLC0415 - see `scan`

        database = self.database
        with database.translate_driver_errors():
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
        """Return how the stored answer differs from a new full scan by the stored recipe.

        The result also names our triggers and views that are not as they were made. Nothing is written.
        """
        from db_dedup.jobs.verify.verification import verify  # noqa: PLC0415 - see `scan`

        with self.database.translate_driver_errors():
            with self.database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                context = self._access.stored_context(connection, stored)
            return verify(context, stored)

    def worker(self, batch_changes: int = BATCH_CHANGES, cache_mb: int = CACHE_MB) -> TableWorker:
        """Return the worker, which handles the changes that the triggers queue, by the stored recipe.

        Args:
            batch_changes: the most changes in one transaction.
            cache_mb: megabytes for the features of compared rows, which are read again without them.

        Raises:
            RecipeDiffersError: the given settings are not the stored ones.
        """
        from db_dedup.jobs.worker.table_worker import TableWorker  # noqa: PLC0415 - see `scan`

        require_count(batch_changes, "batch_changes", 1)
        require_count(cache_mb, "cache_mb", 0)
        database = self.database
        with database.translate_driver_errors(), database.engine.connect() as connection:
            database.require_schema_on(connection)
            self._access.source(connection, self._access.find_same(connection).watched)
        # The worker scans by the stored settings, so that it never undoes a later scan by other settings.
        as_stored = Deduplicator(database, self.name, progress=self._progress)
        return TableWorker(
            WorkerTable(
                self.name,
                database.engine,
                database.dialect,
                database.tables,
                self._access.stored_context,
                as_stored.scan,
                as_stored.trigger_state,
                as_stored._triggers().mend,
                DEFAULT_ENGINE,
                cache_mb,
            ),
            batch_changes,
        )

    def retry(self) -> int:
        """Queue the changes that were given up again; return their number."""
        database = self.database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as connection,
        ):
            database.require_schema_on(connection)
            table_id = self._access.find_stored(connection).id
            return changes.retry_dead(connection, database.dialect, database.tables, table_id)

    def explain(self, key_a: RowKey, key_b: RowKey) -> Explanation:
        """Explain by the stored recipe why the present texts of two rows are duplicates, or why not."""
        return self._answers.explain(key_a, key_b)

    def frame_examples(self) -> tuple[FrameExample, ...]:
        """Return rows as they are now in which the stored frames are seen; no text of them is stored."""
        return self._answers.frame_examples()

    def pairs(
        self,
        expand: bool = False,
        limit: int | None = None,
        kinds: Iterable[Kind] | None = None,
        other_place: bool | None = None,
    ) -> Iterator[DuplicatePair]:
        """Yield the duplicate pairs, exact duplicates among them.

        Args:
            expand: also those that exact duplicates and abridged groups imply.
            limit: the most pairs.
            kinds: only pairs of these kinds; pairs whose kind is not known are of none.
            other_place: only pairs with the flag, or only those without it.
        """
        parts = pair_columns(self, expand, limit, kinds, other_place)
        return chain.from_iterable(part.pairs() for part in parts)

    def groups(self, limit: int | None = None) -> list[GroupSummary]:
        """Return the duplicate groups, the largest first."""
        require_limit(limit)
        return self._answers.groups(limit)

    def members(self, group_id: RowKey) -> list[str]:
        """Return the row keys of a group, the representative first; an empty list if there is none."""
        return self._answers.members(group_id)

    def members_of(self, group_ids: Iterable[RowKey], each: int | None = None) -> dict[str, list[str]]:
        """Return group id -> row keys for several groups, as `members` does for one.

        Args:
            group_ids: the groups.
            each: the most row keys of a group; None for all.
        """
        require_limit(each, "each")
        return self._answers.members_of(iterable_of(group_ids, "group_ids", Phrase("group ids")), each)

    def group_history(self, group_id: RowKey) -> GroupHistory:
        """Return what has become of a group that has or had this id: it changes with its representative."""
        return self._answers.group_history(group_id)

    def group_changes(self, limit: int = 100) -> list[GroupChange]:
        """Return the latest changes of the ids of groups, the latest first."""
        require_count(limit, "limit", 1)
        return self._answers.group_changes(limit)

    def texts(self) -> RowTexts:
        """Return a reader of the watched columns, for rows that are known by their keys."""
        with self.database.translate_driver_errors(), self.database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            _, source = self._access.source(connection, stored.watched)
        return RowTexts(self.database, source, self._access.store(stored))

    def labels(self) -> TableLabels:
        """Return the labels of the table's pairs, to read and to change."""
        return TableLabels(self.database, self._access, self.name)

    def calibrate(
        self, labels: Iterable[PairLabel] | None = None, *, unlabelled_are_wrong: bool = False
    ) -> Calibration:
        """Return how good the settings are by labelled pairs, and which settings are better.

        Nothing is written.

        Args:
            labels: the labelled pairs; if left out, the stored labels are used.
            unlabelled_are_wrong: True if every pair without a label is no duplicate.

        Raises:
            ConfigError: no labelled duplicate is among the rows.
        """
        return self._judging().calibrate(labels, unlabelled_are_wrong=unlabelled_are_wrong)

    def compare(
        self, labels: Iterable[PairLabel] | None = None, plan: ComparisonPlan | None = None
    ) -> Comparison:
        """Return how well the methods of other papers, and our rules, tell labelled pairs apart.

        Only the labelled rows are read. Nothing is written.

        Args:
            labels: the labelled pairs; if left out, the stored labels are used.
            plan: what to compare; if left out, the methods of the five papers.

        Raises:
            ConfigError: no pair is labelled as a duplicate, or none as no duplicate.
        """
        return self._judging().compare(labels, plan)

    def _judging(self) -> TableJudging:
        from db_dedup.app.table_judging import TableJudging  # noqa: PLC0415 - see `scan`

        return TableJudging(self.database, self._access, self.name)

    def attach(self, dry_run: bool = False) -> list[str]:
        """Make the triggers on the table that queue its changes, or repair them.

        Args:
            dry_run: change nothing.

        Returns:
            The statements that were run, or would be; none if the triggers are as they should be.
        """
        return self._triggers().attach(dry_run)

    def detach(self) -> int:
        """Drop the triggers, even if the table is gone, and the queued changes; return their number."""
        return self._triggers().detach(self._access.find_stored)

    def trigger_state(self) -> AttachmentReport:
        """Return whether the triggers are as they were made and fit the settings."""
        return self._triggers().state()

    def trigger_statements(self) -> list[str]:
        """Return the DDL of this table's triggers, as `attach` would run it on a table without them."""
        return self._triggers().statements()

    def view_statements(self) -> list[str]:
        """Return the DDL of this table's view, as a scan would run it."""
        if self.database.is_apart:
            raise ConfigError("the table has no view: our tables are in another database")
        with self.database.translate_driver_errors(), self.database.engine.connect() as connection:
            stored = self._access.require_stored(connection)
            _, source = self._access.source(connection, self._access.given or stored.watched)
            view = TableView(self.database.dialect, self.database.tables, source)
            return [f"{printable(s, connection.dialect)};" for s in view.statements(stored)]

    def _triggers(self) -> TableTriggers:
        return TableTriggers(self.database, self._to_attach)

    def _to_attach(self, connection: Connection) -> tuple[StoredTable | None, WatchedTable, SourceTable]:
        """Return what the triggers are made from: the stored settings, before the first scan the given."""
        access, stored = self._access, watched_tables.find_table(connection, self.database.tables, self.name)
        is_scanned = stored is not None and stored.recipe is not None
        watched = access.require_scanned(connection).watched if is_scanned else access.settings(connection)
        watched, source = access.source(connection, watched)
        return stored, watched, source.table


def pair_columns(
    dedup: Deduplicator,
    expand: bool,
    limit: int | None,
    kinds: Iterable[Kind] | None,
    other_place: bool | None,
) -> Iterator[PairColumns]:
    """Yield the pairs of `Deduplicator.pairs` some thousand at a time, which is faster."""
    require_limit(limit)
    return dedup._answers.pairs(expand, limit, PairFilter(kinds_of(kinds), other_place))


def open_deduplicator(
    url: str,
    settings: Settings | None,
    table: str,
    progress: Progress | None = None,
    store: str | None = None,
) -> Deduplicator:
    """Return the deduplicator of a table: by the settings file, or without a file by the stored settings."""
    if settings is None:
        return Deduplicator(Database(url, store=store), table, progress=progress)
    database = Database(url, settings.schema_name, settings.prefix, store=store)
    return Deduplicator(database, settings.watched(table), progress=progress)
