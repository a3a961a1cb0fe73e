"""A table with triggers on it, and what they queued."""

from __future__ import annotations

import threading
from typing import Any

from sqlalchemy import delete, select, text

from db_dedup import Deduplicator
from db_dedup.config import watched_table
from db_dedup.jobs.worker.change_worker import ChangeWorker
from tests.dialects.tables import run
from tests.servers import Database

PETITIONS = (
    "CREATE TABLE petitions (id INTEGER NOT NULL PRIMARY KEY, body VARCHAR(200), region VARCHAR(20), "
    "received VARCHAR(20), status VARCHAR(20))"
)
INSERT = "INSERT INTO petitions VALUES (1, 'a', 'x', '1', 'new'), (2, 'b', 'x', '2', 'new')"

Change = tuple[str, str]
"""A row key and what happened to the row."""


def attached(database: Database, name: str = "petitions", **settings: Any) -> Deduplicator:
    """Our tables made, the table attached, and nothing queued yet."""
    settings.setdefault("columns", {"body": 1})
    dedup = Deduplicator(database.engine, watched_table(name, settings))
    dedup.upgrade()
    dedup.attach()
    return dedup


def petitions(database: Database, *statements: str, **settings: Any) -> Deduplicator:
    """An attached table of petitions; what these statements wrote before is not queued."""
    run(database, PETITIONS, *statements)
    return attached(database, **settings)


def drain(dedup: Deduplicator) -> None:
    """Let a worker handle all that is queued."""
    ChangeWorker([dedup.worker()]).run(threading.Event(), drain=True)


def changes(dedup: Deduplicator) -> list[Change]:
    """The whole queue, sorted."""
    change = dedup.database.tables.change
    with dedup.database.engine.connect() as connection:
        return sorted(map(tuple, connection.execute(select(change.c.row_key, change.c.operation))))


def queued_by(dedup: Deduplicator, database: Database, *statements: str) -> list[Change]:
    """What these statements, each a transaction, add to the queue."""
    with dedup.database.engine.begin() as connection:
        connection.execute(delete(dedup.database.tables.change))
    for statement in statements:
        run(database, statement)
    return changes(dedup)


def values_of(database: Database, query: str) -> list[Any]:
    with database.engine.connect() as connection:
        return list(connection.execute(text(query)).scalars())
