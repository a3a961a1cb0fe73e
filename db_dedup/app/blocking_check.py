"""A check that is exact whoever else checks at the same moment: one at a time, until the caller's commit."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.app.database import Database
from db_dedup.engines.embedded.lookup import CheckResult, Lookup
from db_dedup.engines.embedded.queued import Queued
from db_dedup.errors import ConfigError, NotScannedError, TableBusyError, TriggerError
from db_dedup.jobs.attachment import AttachmentState, catalogue_differences, trigger_target
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import SEARCH_AGAIN, TRUNCATED, Change
from db_dedup.store.source import storable_key
from db_dedup.store.watched_tables import StoredTable

MOST_QUEUED: Final = 10_000
"""Changes: more of them would be read for longer than others should wait."""


class BlockingCheck:
    """Checks a record of one table in the caller's transaction, and keeps all others out until its end."""

    def __init__(self, database: Database, name: str, find_lookup: Callable[[Connection], Lookup]) -> None:
        self._database, self._name, self._find_lookup = database, name, find_lookup

    def check(
        self, connection: Connection, record: Mapping[str, object], row_key: str | None = None
    ) -> CheckResult:
        """What the record duplicates among all that is committed, and among the caller's own rows.

        Args:
            connection: in a transaction of the caller's.
            record: column name -> value.
            row_key: under which the row is going to be stored, or is already; it is no duplicate of itself.

        Raises:
            TableBusyError: others have the table for longer than one should wait.
            NotScannedError: the table has no triggers, or rows that no scan has seen.
            TriggerError: its triggers miss changes.
            ConfigError: the connection keeps no transaction, or one that does not see later commits.
            RowKeyError: no row can be stored under that key.
        """
        if row_key is not None:
            storable_key(row_key)
        with self._turn(connection):
            stored, scanner = watched_tables.lock_table(connection, self._database.tables, self._name)
            lookup = self._find_lookup(connection)
            stored = self._require_followed(connection, stored)
            queued = self._read_queued(connection, stored, lookup, row_key)
            found = lookup.check(connection, record, queued=queued)
            # A scan writes the answer of the rows that it has read: this one would be taken for gone.
            if row_key is not None and scanner is None and not found.matches:
                self._put(connection, stored, lookup, row_key, record)
        return found

    @contextmanager
    def _turn(self, connection: Connection) -> Iterator[None]:
        database = self._database
        if database.is_apart:
            raise ConfigError("a check that blocks needs our tables in the database of the rows")
        lock = watched_tables.take_turn(database.tables, self._name)
        with ExitStack() as stack:
            try:
                stack.enter_context(database.dialect.turn(connection, lock, database.tables.change))
            except SQLAlchemyError as error:
                told = database.dialect.translate_error(error)
                if not told.is_transient:
                    raise
                raise TableBusyError(
                    f"{self._name!r} is not free for this check ({told}): roll back and try again"
                ) from error
            yield

    def _require_followed(self, connection: Connection, stored: StoredTable | None) -> StoredTable:
        """Give the stored table; whatever of its rows is not stored is in the queue."""
        if stored is None or stored.attached_at is None:
            raise NotScannedError(
                f"{self._name!r} has no triggers, and a check that blocks needs them: "
                f"run `db-dedup attach {self._name}`"
            )
        self._require_triggers(connection, stored)
        last = scans.last_finished(connection, self._database.tables, stored.id)
        if last is None or last.started_at < stored.attached_at:
            raise NotScannedError(
                f"{self._name!r} has not been scanned since it was attached: run `db-dedup scan {self._name}`"
            )
        return stored

    def _require_triggers(self, connection: Connection, stored: StoredTable) -> None:
        """Look on each check: it takes some milliseconds, and a disabled trigger would hide duplicates."""
        database = self._database
        target = trigger_target(database.namespace, stored.id, stored.watched)
        found = catalogue_differences(connection, database.dialect, target, stored.trigger_digest)
        # Triggers that this account may not see are there.
        faults = [sentence for state, sentence in found if state is not AttachmentState.UNKNOWN]
        if faults:
            raise TriggerError(
                f"the triggers of {self._name!r} miss changes ({'; '.join(faults)}): "
                f"run `db-dedup attach {self._name}`"
            )

    def _read_queued(
        self, connection: Connection, stored: StoredTable, lookup: Lookup, own_key: str | None
    ) -> Queued:
        waiting = changes.read_waiting(connection, self._database.tables, stored.id, MOST_QUEUED + 1)
        if len(waiting) > MOST_QUEUED or any(change.operation == TRUNCATED for change in waiting):
            raise TableBusyError(
                f"the worker of {self._name!r} is far behind: roll back and try again when it has caught up"
            )
        keys = {change.row_key for change in waiting if not change.fault}
        return lookup.read_queued(connection, sorted(keys), own_key)

    def _put(
        self,
        connection: Connection,
        stored: StoredTable,
        lookup: Lookup,
        row_key: str,
        record: Mapping[str, object],
    ) -> None:
        database = self._database
        lookup.put(connection, row_key, record)
        # The trigger's own change would find the row as it is stored, and search nothing.
        again = [Change(row_key, SEARCH_AGAIN)]
        changes.append_changes(connection, database.dialect, database.tables, stored.id, again)
