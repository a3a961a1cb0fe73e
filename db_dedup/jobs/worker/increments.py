"""The increment of one table, kept from batch to batch with what it has loaded."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from db_dedup.engines.base import Increment
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.worker.worker_table import WorkerTable
from db_dedup.store import changes, scans
from db_dedup.store.changes import Change
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable

# Reading a fingerprint into memory costs this share of looking one up in the database.
_LOAD_PER_LOOK_UP: Final = 1 / 2_500


class Increments:
    """Gives the increment for the settings and the answer as they are stored now.

    It is made again when the settings change. Its index of all fingerprints in memory is loaded where many
    changes wait, and dropped when somebody else has written the answer.
    """

    def __init__(self, table: WorkerTable) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table = table
        self._stored: StoredTable | None = None
        self._increment: Increment | None = None
        self._index_version = -1

    @property
    def source(self) -> Source | None:
        """The user's table; None before the first increment."""
        return None if self._increment is None else self._increment.source

    def make_ready(self, stored: StoredTable) -> None:
        """Load and compile what a batch needs, before it takes a lock."""
        if self._is_for(stored):
            return
        with self._table.engine.connect() as connection:
            context = self._table.make_context(connection, stored)
        self._increment, self._stored = self._made(context, stored), stored
        self._increment.make_ready()

    def current(
        self, connection: Connection, stored: StoredTable, taken: int, *, may_load: bool
    ) -> Increment:
        """Return the increment for a batch.

        Args:
            connection: in the transaction of the batch.
            stored: the table as it is stored now.
            taken: how many changes the batch has.
            may_load: there is memory for an index of all fingerprints.
        """
        increment = self._increment
        if increment is None or not self._is_for(stored):
            increment = self._increment = self._made(self._table.make_context(connection, stored), stored)
        self._stored = stored
        if self._index_version != stored.answer_version:
            increment.drop_index()
        if not increment.has_index and self._index_is_worth_loading(connection, stored, taken, may_load):
            increment.load_index(connection)
        return increment

    def prepare(
        self, connection: Connection, stored: StoredTable, waiting: Sequence[Change], *, may_load: bool
    ) -> None:
        """Compute ahead what the next batch needs, before the table is locked.

        Args:
            connection: one of our own, for reading alone.
            stored: the table as it is stored now.
            waiting: the changes that the batch will probably take.
            may_load: there is memory for an index of all fingerprints.
        """
        increment = self.current(connection, stored, len(waiting), may_load=may_load)
        # Everything is read under this version of the answer; `current` compares it once the lock is held.
        self._index_version = stored.answer_version
        of_rows = [change for change in waiting if change.names_a_row]
        keys = [change.row_key for change in of_rows]
        increment.prepare(connection, keys, changes.searched_again(of_rows))

    def note_commit(self, stored: StoredTable) -> None:
        """Note that a batch on this answer was committed: the index agrees with the answer after it."""
        self._index_version = stored.answer_version + 1

    def drop_index(self) -> None:
        """Forget the fingerprints in memory: after a rollback they are ahead of the database."""
        if self._increment is not None:
            self._increment.drop_index()

    def forget(self) -> None:
        """Make the increment again for the next batch."""
        self._stored = self._increment = None

    def _is_for(self, stored: StoredTable) -> bool:
        """Return whether the increment that there is was made for these settings."""
        return self._stored is not None and self._stored.is_alike(stored)

    def _made(self, context: JobContext, stored: StoredTable) -> Increment:
        store = self._table.store(stored)
        return context.matching_engine.increment(
            context.watched, context.recipe, store, context.source, self._table.cache_mb * 2**20
        )

    def _index_is_worth_loading(
        self, connection: Connection, stored: StoredTable, taken: int, may_load: bool
    ) -> bool:
        """Return whether reading all fingerprints takes less time than to look up those of the queue."""
        last = scans.last_finished(connection, self._table.tables, stored.id)
        if last is None or not may_load:
            return False
        look_ups = int(last.rows * _LOAD_PER_LOOK_UP)
        waiting = changes.count_waiting(connection, self._table.tables, stored.id, at_most=look_ups + 1)
        return taken + waiting > look_ups
