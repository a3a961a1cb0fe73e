"""A check that is exact whoever else checks at the same moment: one at a time, until the caller's commit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from db_dedup.app.database import Database
from db_dedup.engines.embedded.lookup import Lookup
from db_dedup.engines.embedded.queued import Queued
from db_dedup.errors import (
    ConfigError,
    InvalidArgumentError,
    NotScannedError,
    TableBusyError,
    TriggerError,
)
from db_dedup.jobs.attachment import AttachmentState, catalogue_differences, trigger_target
from db_dedup.records import CheckResult, Record, RowKey
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import SEARCH_AGAIN, TRUNCATED, Change
from db_dedup.store.source import storable_key
from db_dedup.store.watched_tables import StoredTable

MOST_QUEUED: Final = 10_000
"""Changes: more of them would be read for longer than others should wait."""


class BlockingCheck:
    """Checks records of one table in the caller's transaction, and keeps all others out until its end."""

    def __init__(self, database: Database, name: str, find_lookup: Callable[[Connection], Lookup]) -> None:
        self._database, self._name, self._find_lookup = database, name, find_lookup

    def check(
        self, connection: Connection, records: Sequence[Record], row_keys: Sequence[RowKey | None]
    ) -> list[CheckResult]:
        """What each record duplicates among all that is committed, and among the caller's own rows.

        Args:
            connection: in a transaction of the caller's.
            records: n records; they are not compared with each other.
            row_keys: for each record the key under which its row is going to be stored, or is already, None
                where it is not known; no row is a duplicate of itself.

        Raises:
            TableBusyError: others have the table for longer than one should wait.
            NotScannedError: the table has no triggers, or rows that no scan has seen.
            TriggerError: its triggers miss changes.
            ConfigError: the connection keeps no transaction, or one that does not see later commits.
            RowKeyError: no row can be stored under one of the keys.
            InvalidArgumentError: one is no key of the table, or two records have the same.
        """
        with self._turn(connection):
            stored, scanner = watched_tables.lock_table(connection, self._database.tables, self._name)
            lookup = self._find_lookup(connection)
            own_keys = _own_keys(lookup, row_keys)
            stored = self._require_followed(connection, stored)
            queued = self._read_queued(connection, stored, lookup)
            found = lookup.check(connection, records, queued=queued, own_keys=own_keys)
            # A scan writes the answer of the rows that it has read: these would be taken for gone.
            if scanner is None:
                checked = zip(own_keys, records, found, strict=True)
                new = {
                    key: record for key, record, result in checked if key is not None and not result.matches
                }
                self._put(connection, stored, lookup, new)
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

    def _read_queued(self, connection: Connection, stored: StoredTable, lookup: Lookup) -> Queued:
        waiting = changes.read_waiting(connection, self._database.tables, stored.id, MOST_QUEUED + 1)
        if len(waiting) > MOST_QUEUED or any(change.operation == TRUNCATED for change in waiting):
            raise TableBusyError(
                f"the worker of {self._name!r} is far behind: roll back and try again when it has caught up"
            )
        keys = {change.row_key for change in waiting if not change.fault}
        return lookup.read_queued(connection, sorted(keys))

    def _put(
        self, connection: Connection, stored: StoredTable, lookup: Lookup, records: Mapping[str, Record]
    ) -> None:
        database = self._database
        if not records:
            return
        lookup.put(connection, records)
        # The trigger's own change would find the row as it is stored, and search nothing.
        again = [Change(row_key, SEARCH_AGAIN) for row_key in records]
        changes.append_changes(connection, database.dialect, database.tables, stored.id, again)


def _own_keys(lookup: Lookup, given: Sequence[RowKey | None]) -> list[str | None]:
    keys = [None if key is None else storable_key(lookup.row_key_of(key)) for key in given]
    named = [key for key in keys if key is not None]
    if len(set(named)) < len(named):
        raise InvalidArgumentError("two records have the same row key: each row has its own")
    return keys
