"""Is the stored answer what a fresh full scan gives, and is what we made in the database as we made it?"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, func, select

from db_dedup.amounts import counted
from db_dedup.errors import SchemaMissingError
from db_dedup.jobs.attachment import Attachment, plan_triggers
from db_dedup.jobs.comparison import compare_answers, compare_rows
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.rehearsal import hottest_blocks, rehearse
from db_dedup.jobs.scan_costs import scan_costs
from db_dedup.jobs.table_view import TableView
from db_dedup.jobs.verdicts import verdicts_for
from db_dedup.records import ScanPreview, Verification
from db_dedup.schema import migrate
from db_dedup.schema.views import FIXED_VIEWS, fixed_view
from db_dedup.store.bands import count_entries, count_sketched
from db_dedup.store.changes import count_waiting
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.watched_tables import StoredTable

_HOTTEST = 5


def verify(context: JobContext, stored: StoredTable) -> Verification:
    """Compare what is stored with a fresh full scan by the stored settings. Nothing is written.

    Where the database reads and writes at the same time, rows, answer and queue are of one moment; elsewhere
    what the application writes meanwhile shows up as a difference.

    Raises:
        SchemaMissingError: one of our tables is not there, so that there is nothing to compare with.
    """
    _require_tables(context)
    store = FingerprintStore(context.dialect, context.tables, stored.id, stored.recipe or 0)
    with _one_moment(context) as (snapshot, ours):
        fresh = rehearse(context, verdicts_for(context).rejected, snapshot).scanned
        with _or_new(context, ours) as connection:
            return Verification(
                table=context.watched.name,
                answer=compare_answers(connection, store, fresh),
                rows=compare_rows(connection, store, fresh),
                drift=tuple(_drift(context, connection, stored)),
                waiting=count_waiting(connection, context.tables, stored.id),
            )


def preview(context: JobContext, stored: StoredTable | None) -> ScanPreview:
    """What a scan by these settings would find and cost, and how that differs from the stored answer."""
    with context.source_engine.connect() as connection:
        context.source.check_settings(connection)
    rehearsal = rehearse(context, () if stored is None else verdicts_for(context).rejected)
    is_new = stored is None or stored.recipe_digest != context.watched.recipe_digest()
    report = rehearsal.report
    differences, rows, pairs = None, report.rows, report.pairs
    if stored is not None and stored.recipe is not None:
        store = FingerprintStore(context.dialect, context.tables, stored.id, stored.recipe)
        with context.dialect.read_snapshot(context.engine) as connection:
            differences = compare_answers(connection, store, rehearsal.scanned)
            if not is_new:
                rows = compare_rows(connection, store, rehearsal.scanned).count
                pairs = differences.pairs_gained.count + differences.pairs_changed.count
    return ScanPreview(
        report=report,
        costs=scan_costs(context, rehearsal, rows=rows, pairs=pairs, in_pieces=is_new),
        matching_seconds=rehearsal.matching_seconds,
        hottest_blocks=hottest_blocks(rehearsal.scanned, _HOTTEST),
        differences=differences,
        is_new_recipe=is_new,
    )


@contextmanager
def _one_moment(context: JobContext) -> Iterator[tuple[Connection | None, Connection | None]]:
    """A snapshot of the user's rows, and of our tables; None for one that cannot be had without keeping
    writers out."""
    with context.source_dialect.read_snapshot(context.source_engine) as connection:
        if context.source_dialect.reads_beside_writes(connection):
            yield connection, None if context.is_apart else connection
            return
    yield None, None


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
            f"{', '.join(missing)} is missing: `db-dedup uninstall`, then `db-dedup upgrade` and "
            f"`db-dedup scan {context.watched.name}` start anew"
        )


def _drift(context: JobContext, connection: Connection, stored: StoredTable) -> Iterator[str]:
    """A sentence for each thing that is not as we made it, with what mends it."""
    yield from _fixed_view_faults(context, connection)
    store = FingerprintStore(context.dialect, context.tables, stored.id, stored.recipe or 0)
    entries, wanted = count_entries(connection, store), count_sketched(connection, store)
    if entries != wanted:
        again = f"`db-dedup scan --afresh {context.watched.name}`"
        there = counted(entries, "entry", "entries")
        yield f"{there} in the band table where {wanted:,} belong: {again} makes them anew"
    if context.is_apart:
        return
    fault = TableView(context.dialect, context.tables, context.source).fault(connection, stored)
    if fault:
        yield f"{fault}: `db-dedup scan {context.watched.name}` makes it anew"
    if stored.attached_at is not None:
        plan = plan_triggers(context.tables.namespace, stored.id, context.watched, context.source.table)
        for difference in Attachment(context.dialect, context.tables, plan).state(connection).differences:
            yield f"{difference}: `db-dedup attach {context.watched.name}` makes them anew"


def _fixed_view_faults(context: JobContext, connection: Connection) -> Iterator[str]:
    namespace = context.tables.namespace
    missing = migrate.missing_views(connection, namespace)
    for base, query in FIXED_VIEWS.items():
        name = namespace.name(base)
        if name in missing:
            yield f"the view {name} is missing: `db-dedup upgrade` makes it anew"
            continue
        shown, wanted = (
            connection.scalar(
                select(func.count()).select_from(rows).where(rows.c.table_name == context.watched.name)
            )
            for rows in (fixed_view(namespace, base), query(context.tables).subquery())
        )
        if shown != wanted:
            yield f"the view {name} is not as it was made: drop it, and `db-dedup upgrade` makes it anew"
