"""What a worker is given of a table, and what it reports of each batch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine

from db_dedup.dialects.base import Dialect
from db_dedup.errors import NotScannedError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.objects.attachment import AttachmentReport
from db_dedup.records import ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.store import watched_tables
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.watched_tables import StoredTable

CACHE_MB: Final = 256
"""Memory for the features of rows of one table, unless a caller asks for another limit."""

MakeContext = Callable[[Connection, StoredTable], JobContext]


@dataclass(frozen=True)
class Batch:
    """What a worker did in one transaction, or in one scan.

    Attributes:
        changes: taken out of the queue.
        dead: changes that were parked among the dead ones.
        seconds: how long it took.
        is_scan: the whole table was scanned.
    """

    table: str
    changes: int
    dead: int
    seconds: float
    is_scan: bool = False


class LockedTable(NamedTuple):
    """A watched table that no other worker handles until this transaction ends.

    Attributes:
        stored: what is stored of it.
        is_scanned: a scan holds its lease, so that nothing may be written.
    """

    stored: StoredTable
    is_scanned: bool


@dataclass(frozen=True)
class WorkerTable:
    """A table for the worker.

    Attributes:
        make_context: what a job works with, by the settings as they are stored.
        scan: a full scan of the table by these settings.
        trigger_state: how the table's triggers are now.
        mend_triggers: makes them again, if the table is attached.
        engine_name: of the engine that `scan` uses.
        cache_mb: memory for the features of rows, so that they need not be read for every batch.
    """

    name: str
    engine: Engine
    dialect: Dialect
    tables: Tables
    make_context: MakeContext
    scan: Callable[[], ScanReport]
    trigger_state: Callable[[], AttachmentReport]
    mend_triggers: Callable[[], object]
    engine_name: str
    cache_mb: int = CACHE_MB

    def read(self, connection: Connection) -> StoredTable:
        """Return what is stored of the table.

        Raises:
            NotScannedError: it is not watched.
            DedupError: another version of the program has stored it; its rows cannot be compared with ours.
        """
        return self._require(watched_tables.find_table(connection, self.tables, self.name))

    def store(self, stored: StoredTable) -> FingerprintStore:
        """Return the fingerprints of the recipe that serves."""
        return FingerprintStore.serving(self.dialect, self.tables, stored)

    def lock(self, connection: Connection) -> LockedTable:
        """Keep other workers out of the table until this transaction ends; raises what `read` raises."""
        found, scanner = watched_tables.lock_table(connection, self.tables, self.name)
        return LockedTable(self._require(found), scanner is not None)

    def _require(self, stored: StoredTable | None) -> StoredTable:
        if stored is None:
            raise NotScannedError(
                "{name!r} is not watched: run `db-dedup attach {name}` first", name=self.name
            )
        return stored.require_current()
