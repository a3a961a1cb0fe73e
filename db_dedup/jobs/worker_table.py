"""What a worker is given of a table, and what it says of each batch."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from db_dedup.dialects.base import Dialect
from db_dedup.jobs.attachment import AttachmentReport
from db_dedup.jobs.context import JobContext
from db_dedup.records import ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.store.watched_tables import StoredTable

MakeContext = Callable[[Connection, StoredTable], JobContext]


@dataclass(frozen=True)
class Batch:
    """What a worker did in one transaction, or in one scan.

    Attributes:
        changes: taken out of the queue.
        dead: rows whose changes were given up.
        seconds: it took.
        is_scan: the whole table was scanned.
    """

    table: str
    changes: int
    dead: int
    seconds: float
    is_scan: bool = False


@dataclass(frozen=True)
class WorkerTable:
    """A table for the worker.

    Attributes:
        make_context: what a job works with, by the settings as they are stored.
        scan: a full scan of the table by these settings.
        trigger_state: how the table's triggers are now.
        mend_triggers: makes them again, if the table is attached.
    """

    name: str
    engine: Engine
    dialect: Dialect
    tables: Tables
    make_context: MakeContext
    scan: Callable[[], ScanReport]
    trigger_state: Callable[[], AttachmentReport]
    mend_triggers: Callable[[], object]
