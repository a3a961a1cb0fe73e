"""After a scan has switched the answer: the table's triggers and view, as the new settings need them."""

from collections.abc import Callable

from db_dedup.app.database import Database
from db_dedup.errors import DatabaseError, DatabaseUnavailableError, DedupError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.table_view import TableView
from db_dedup.store import watched_tables


def follow_answer(database: Database, context: JobContext, follow_settings: Callable[[], object]) -> None:
    """Make triggers and view again where they must be: each, even if the other fails.

    Args:
        database: whose tables.
        context: what the scan worked with.
        follow_settings: makes the triggers.

    Raises:
        DatabaseError: the message says that the scan has finished all the same, and what mends the rest. A
            transient one where somebody uses the table or the view.
    """
    name = context.watched.name
    steps: tuple[tuple[str, Callable[[], object], str], ...] = (
        ("triggers", follow_settings, f"run `db-dedup attach {name}`"),
        ("view", lambda: _refresh_view(database, context), f"run `db-dedup scan {name}` again"),
    )
    failed: list[DedupError] = []
    for what, make, advice in steps:
        try:
            with database.errors_told():
                make()
        except DedupError as error:
            kind = DatabaseUnavailableError if error.is_transient else DatabaseError
            failed.append(
                kind(
                    f"the scan of {name!r} has finished and its answer is shown, but the table's {what} "
                    f"could not be made again ({error}): {advice}"
                )
            )
    if failed:
        raise failed[0]


def _refresh_view(database: Database, context: JobContext) -> None:
    with database.dialect.write_transaction(database.engine) as connection:
        stored = watched_tables.find_table(connection, database.tables, context.watched.name)
        if stored is not None:
            TableView(database.dialect, database.tables, context.source).refresh(connection, stored)
