"""Compare the stored answer with a fresh full scan, and our views and triggers with how they were made."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from db_dedup.errors import DedupError, SchemaMissingError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.attachment import Attachment, plan_triggers
from db_dedup.jobs.objects.table_view import TableView
from db_dedup.jobs.review.labels import labels_for
from db_dedup.jobs.scan.costs import scan_costs
from db_dedup.jobs.scan.frame_examples import frame_examples
from db_dedup.jobs.scan.frozen_frames import NOTHING_FROZEN, FrozenFrames, first_frames, frames_again
from db_dedup.jobs.scan.rehearsal import rehearse
from db_dedup.jobs.scan.report import hot_blocks
from db_dedup.jobs.scan.risks import risks_of_table
from db_dedup.jobs.verify.comparison import compare_answers, compare_rows
from db_dedup.jobs.verify.unsettled import unsettled_keys
from db_dedup.plurals import counted
from db_dedup.records import ScanPreview, Verification
from db_dedup.schema import migrate
from db_dedup.schema.indexes import missing_indexes
from db_dedup.schema.views import FIXED_VIEWS, fixed_view
from db_dedup.store.changes import count_waiting
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.frames import require_frames
from db_dedup.store.sketch_contents import IndexContents
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

_HOT_BLOCKS = 5
_WRONG_ENTRIES: Final = (
    "{entries} in the index of sketches instead of {wanted:,}: `db-dedup scan --rebuild {name}` "
    "writes them again"
)
_DAMAGED_INDEX: Final = (
    "the stored index of sketches is damaged: `db-dedup scan --rebuild {name}` writes it again"
)
_WRONG_VIEW: Final = "the view {name} is not as it was made: drop it, and `db-dedup upgrade` makes it again"


def verify(context: JobContext, stored: StoredTable) -> Verification:
    """Compare what is stored with a fresh full scan by the stored settings. Nothing is written.

    A row whose change waits in the queue need not be stored as it is now. Its pairs and groups are compared.

    In a database that can read a snapshot while others write, rows, answer and queue are of one moment. In
    others, what the application writes meanwhile is reported as a difference.

    Raises:
        SchemaMissingError: one of our tables is missing.
    """
    _require_tables(context)
    store = FingerprintStore.serving(context.dialect, context.tables, stored)
    with _one_moment(context) as snapshots:
        frozen = _frozen(context, stored, snapshots.rows)
        kept = replace(frozen, frames=context.frames)
        rehearsal = rehearse(context, kept, labels_for(context).rejected, snapshots.rows)
        fresh = rehearsal.scanned
        with _or_new(context, snapshots.answer) as connection:
            index = _index(connection, store)
            contents = index if isinstance(index, IndexContents) else None
            unsettled = unsettled_keys(connection, store, fresh)
            return Verification(
                table=context.watched.name,
                answer=compare_answers(connection, store, fresh),
                rows=compare_rows(connection, store, fresh, contents, unsettled),
                drift=tuple(_drift(context, connection, stored, index)),
                waiting=count_waiting(connection, context.tables, stored.id),
                frames=rehearsal.report.frames,
            )


def preview(context: JobContext, stored: StoredTable | None) -> ScanPreview:
    """Return what a scan by these settings would find and cost, and what it would change."""
    with context.source_engine.connect() as connection:
        context.source.check_settings(connection)
    serves = stored is not None and stored.recipe_digest == context.watched.recipe_digest()
    frozen = _frozen(context, stored if serves else None, None)
    is_new = frozen.is_other or not serves
    rehearsal = rehearse(context, frozen, () if stored is None else labels_for(context).rejected)
    report = rehearsal.report
    differences, rows, pairs = None, report.rows, report.pairs
    if stored is not None and stored.recipe is not None:
        store = FingerprintStore(context.dialect, context.tables, stored.id, stored.recipe)
        with context.dialect.read_snapshot(context.engine) as connection:
            differences = compare_answers(connection, store, rehearsal.scanned)
            if not is_new:
                rows = compare_rows(connection, store, rehearsal.scanned, None).count
                pairs = differences.pairs_gained.count + differences.pairs_changed.count
    return ScanPreview(
        report=report,
        costs=scan_costs(context, rehearsal, rows=rows, pairs=pairs, in_pieces=is_new),
        matching_seconds=rehearsal.matching_seconds,
        hottest_blocks=hot_blocks(rehearsal.scanned, _HOT_BLOCKS),
        differences=differences,
        is_new_recipe=is_new,
        risks=tuple(risks_of_table(context, report)),
        frame_examples=() if frozen.sample is None else frame_examples(context, frozen.sample, frozen.frames),
    )


def _frozen(context: JobContext, stored: StoredTable | None, snapshot: Connection | None) -> FrozenFrames:
    """Return the list of a scan by these settings, which serve if `stored` is given."""
    if not context.watched.freezes_list:
        return NOTHING_FROZEN
    if stored is None:
        return first_frames(context)
    with context.engine.connect() as connection:
        found = require_frames(connection, context.tables, stored)
    return NOTHING_FROZEN if found is None else frames_again(context, found, snapshot)


class _Snapshots(NamedTuple):
    """Snapshots of one moment; None for one that would block writers, or is in another database.

    Attributes:
        rows: of the user's table.
        answer: of our tables.
    """

    rows: Connection | None
    answer: Connection | None


@contextmanager
def _one_moment(context: JobContext) -> Iterator[_Snapshots]:
    with context.source.snapshot(context.source_engine) as connection:
        if context.source_dialect.reads_beside_writes(connection):
            yield _Snapshots(connection, None if context.is_apart else connection)
            return
    yield _Snapshots(None, None)


@contextmanager
def _or_new(context: JobContext, connection: Connection | None) -> Iterator[Connection]:
    if connection is not None:
        yield connection
        return
    with context.dialect.read_snapshot(context.engine) as own:
        yield own


def _require_tables(context: JobContext) -> None:
    with context.engine.connect() as connection:
        missing = migrate.missing_tables(connection, context.tables.namespace)
    if missing:
        raise SchemaMissingError(
            "{missing} is missing: `db-dedup uninstall`, then `db-dedup upgrade` and "
            "`db-dedup scan {name}` start again from nothing",
            missing=", ".join(missing),
            name=context.watched.name,
        )


def _index(connection: Connection, store: FingerprintStore) -> IndexContents | DedupError:
    """Return the index of sketches, or what is wrong with it if it cannot be read."""
    try:
        return IndexContents.read(connection, store)
    except DedupError as error:
        return error


def _drift(
    context: JobContext, connection: Connection, stored: StoredTable, index: IndexContents | DedupError
) -> Iterator[str]:
    """Yield a sentence for each thing that is not as we made it, with the command that repairs it."""
    yield from _fixed_view_faults(context, connection)
    for missing in missing_indexes(connection, context.tables):
        yield Phrase("the index {name} is missing: `db-dedup upgrade` makes it again", name=missing.name)
    if isinstance(index, DedupError):
        yield Phrase(_DAMAGED_INDEX, name=context.watched.name)
    elif index.entry_count != index.wanted_count:
        yield Phrase(
            _WRONG_ENTRIES,
            entries=counted(index.entry_count, "entry", "entries"),
            wanted=index.wanted_count,
            name=context.watched.name,
        )
    if context.is_apart:
        return
    fault = TableView(context.dialect, context.tables, context.source).fault(connection, stored)
    if fault:
        yield Phrase("{fault}: `db-dedup scan {name}` makes it again", fault=fault, name=context.watched.name)
    if stored.attached_at is not None:
        plan = plan_triggers(context.tables.namespace, stored.id, context.watched, context.source.table)
        for difference in Attachment(context.dialect, context.tables, plan).state(connection).differences:
            yield Phrase(
                "{difference}: `db-dedup attach {name}` makes them again",
                difference=difference,
                name=context.watched.name,
            )


def _fixed_view_faults(context: JobContext, connection: Connection) -> Iterator[str]:
    namespace = context.tables.namespace
    missing = migrate.missing_views(connection, namespace)
    for base, query in FIXED_VIEWS.items():
        name = namespace.name(base)
        if name in missing:
            yield Phrase("the view {name} is missing: `db-dedup upgrade` makes it again", name=name)
            continue
        shown, wanted = (
            connection.scalar(
                select(func.count()).select_from(rows).where(rows.c.table_name == context.watched.name)
            )
            for rows in (fixed_view(namespace, base), query(context.tables).subquery())
        )
        if shown != wanted:
            yield Phrase(_WRONG_VIEW, name=name)
