"""Make the triggers and the view of a table again, after a scan by new settings has switched the answer."""

from collections.abc import Callable
from typing import Final

from db_dedup.app.database import Database
from db_dedup.errors import DatabaseError, DatabaseUnavailableError, DedupError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.table_view import TableView
from db_dedup.store import watched_tables
from db_dedup.translation import Phrase

_TRIGGERS_FAILED: Final = Phrase(
    "the scan of {name!r} has finished and its answer is shown, but the table's triggers could not be made "
    "again ({error}): run `db-dedup attach {name}`"
)
_VIEW_FAILED: Final = Phrase(
    "the scan of {name!r} has finished and its answer is shown, but the table's view could not be made "
    "again ({error}): run `db-dedup scan {name}` again"
)


def follow_answer(database: Database, context: JobContext, follow_settings: Callable[[], object]) -> None:
    """Make the triggers and the view again if it is needed: each of them, even if the other fails.

    Args:
        database: the database of our tables.
        context: the context of the scan.
        follow_settings: makes the triggers.

    Raises:
        DatabaseError: the triggers or the view could not be made. The message says that the scan has
            finished, and which command repairs the rest. The error is transient if the table or the view is
            in use.
    """
    name = context.watched.name
    steps: tuple[tuple[str, Callable[[], object]], ...] = (
        (_TRIGGERS_FAILED, follow_settings),
        (_VIEW_FAILED, lambda: _refresh_view(database, context)),
    )
    failed: list[DedupError] = []
    for template, make in steps:
        try:
            with database.translate_driver_errors():
                make()
        except DedupError as error:
            kind = DatabaseUnavailableError if error.is_transient else DatabaseError
            failed.append(kind(template, name=name, error=error))
    if failed:
        raise failed[0]


def _refresh_view(database: Database, context: JobContext) -> None:
    with database.dialect.write_transaction(database.engine) as connection:
        stored = watched_tables.find_table(connection, database.tables, context.watched.name)
        if stored is not None:
            TableView(database.dialect, database.tables, context.source).refresh(connection, stored)
