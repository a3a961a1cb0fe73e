"""A watched table of letters with some rows, and workers of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from db_dedup.dialects.base import Dialect
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.worker import batch_size
from db_dedup.jobs.worker.batch_size import BatchSize
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.records import DeadChange
from db_dedup.store import changes
from db_dedup.store.clock import utc_now
from tests.servers import Database
from tests.worker.history import BASES
from tests.worker.watched import Watched

POISON = "poison"


@pytest.fixture
def poison_error() -> type[Exception]:
    """What a text with that word ends the fingerprinting with."""
    return ValueError


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch, poison_error: type[Exception]) -> pytest.MonkeyPatch:
    """No text with that word can be fingerprinted, until the patch is undone."""
    original = Fingerprinter.fingerprint

    def fingerprint(self: Fingerprinter, rows: Sequence[Sequence[str]], *others: Any, **more: Any) -> Any:
        if any(POISON in value for row in rows for value in row):
            raise poison_error("cannot be read")
        return original(self, rows, *others, **more)

    monkeypatch.setattr(Fingerprinter, "fingerprint", fingerprint)
    return monkeypatch


@pytest.fixture
def watched(database: Database) -> Watched:
    """Scanned empty, attached; its key is a number."""
    return Watched.make(database.engine, 0)


@pytest.fixture
def alone(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Scanned empty, attached; four changes are written at a time."""
    write_in_parts(monkeypatch, 4)
    return watched


def write_in_parts(monkeypatch: pytest.MonkeyPatch, changes_a_part: int) -> None:
    """In every database what was matched ahead is written so many changes at a time, however fast it is."""

    def size(dialect: Dialect, limit: int) -> BatchSize:
        return BatchSize(limit, 0.0, changes_a_part, pace_of(dialect))

    monkeypatch.setattr(BatchSize, "for_dialect", size)
    monkeypatch.setattr(batch_size, "_LEAST_BY_TIME", changes_a_part)


def body(number: int) -> str:
    """A text; those whose numbers differ by a multiple of three are near-duplicates, by nine copies."""
    words = list(BASES[number % 3])
    words[-1] += "aeu"[number % 9 // 3]
    return " ".join(words)


def write(watched: Watched, numbers: Iterable[int]) -> None:
    """New rows, each in a transaction of its own."""
    for number in numbers:
        with watched.dedup.database.engine.begin() as connection:
            values = {"id": number, "body": body(number), "region": "A", "received": number}
            connection.execute(insert(watched.letters).values(values))


def change(watched: Watched, number: int, text: str) -> None:
    """Another text for a row."""
    table = watched.letters
    with watched.dedup.database.engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == number).values(body=text))


def drain(watched: Watched, batch_changes: int = 500) -> list[Batch]:
    """Work in this process until the queue is empty."""
    done: list[Batch] = []
    worker = watched.dedup.worker(batch_changes)
    ChangeWorker([worker], on_batch=done.append).run(threading.Event(), drain=True)
    return done


def worker_without_scans(watched: Watched) -> TableWorker:
    """A worker that handles all changes in batches, however many they are."""
    worker = watched.dedup.worker()
    worker._choice.may_prefer_scan = False
    return worker


def drain_by(worker: TableWorker) -> int:
    """Let this worker work until the queue is empty; return how many batches it took."""
    done: list[Batch] = []
    ChangeWorker([worker], on_batch=done.append).run(threading.Event(), drain=True)
    return len(done)


def queue_changes(watched: Watched, row_keys: list[str]) -> None:
    """Changes of these rows, as triggers queue them."""
    database, now = watched.dedup.database, utc_now()
    columns, number = ("table_id", "row_key", "operation", "queued_at"), table_id(watched)
    with database.dialect.write_transaction(database.engine) as connection:
        rows = ((number, row_key, "U", now + timedelta(microseconds=i)) for i, row_key in enumerate(row_keys))
        database.dialect.bulk_insert(connection, database.tables.change, columns, rows)


def count_waiting(watched: Watched) -> int:
    change = watched.dedup.database.tables.change
    with watched.dedup.database.engine.connect() as connection:
        return int(connection.scalar(select(func.count()).select_from(change)) or 0)


def dead(watched: Watched) -> list[DeadChange]:
    database = watched.dedup.database
    with database.engine.connect() as connection:
        return changes.read_dead(connection, database.tables, table_id(watched))


def table_id(watched: Watched) -> int:
    database = watched.dedup.database
    with database.engine.connect() as connection:
        return int(connection.scalar(select(database.tables.watched_table.c.id)) or 0)


def is_right(watched: Watched) -> bool:
    """The views are those of a fresh scan, and there is something in them."""
    stored: dict[str, Any] = watched.stored()
    return bool(stored["groups"]) and stored == watched.fresh()
