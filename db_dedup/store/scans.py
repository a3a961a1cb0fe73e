"""The record of full scans: when each began, how it ended, what it found."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from db_dedup.records import PastScan, ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.store.clock import database_now

RUNNING, FINISHED, FAILED = "running", "finished", "failed"
DIED = "the process ended without a word"


def recipe_to_build(connection: Connection, tables: Tables, table_id: int, recipe_digest: str) -> int:
    """The number to build a recipe under that does not serve: that of the last scan if it was of the same
    recipe, which is then taken up again, else one that was never used."""
    table = tables.scan
    query = (
        select(table.c.recipe, table.c.recipe_digest)
        .where(table.c.table_id == table_id)
        .order_by(table.c.id.desc())
        .limit(1)
    )
    last = connection.execute(query).one_or_none()
    if last is not None and last.recipe_digest == recipe_digest:
        return int(last.recipe)
    # The record alone would not do: somebody may have emptied it.
    watched, fingerprint = tables.watched_table, tables.fingerprint
    used = (
        select(func.max(table.c.recipe)).where(table.c.table_id == table_id),
        select(func.max(fingerprint.c.recipe)).where(fingerprint.c.table_id == table_id),
        select(watched.c.recipe).where(watched.c.id == table_id),
    )
    return max(connection.execute(query).scalar_one() or 0 for query in used) + 1


def is_building(connection: Connection, tables: Tables, name: str, recipe: int | None) -> bool:
    """Whether a scan of a watched table is at work under another recipe than this one, which serves."""
    scan, watched = tables.scan, tables.watched_table
    query = (
        select(scan.c.id)
        .join(watched, watched.c.id == scan.c.table_id)
        .where(
            watched.c.name == name,
            watched.c.lease_until >= database_now(connection),
            scan.c.state == RUNNING,
            scan.c.recipe != recipe,
        )
    )
    return connection.execute(query).first() is not None


def begin_scan(
    connection: Connection, tables: Tables, table_id: int, recipe: int, recipe_digest: str, owner: str
) -> int:
    """Write that a scan begins; those left running by a process that died have failed. Gives its number."""
    table = tables.scan
    connection.execute(
        update(table)
        .where(table.c.table_id == table_id, table.c.state == RUNNING)
        .values(state=FAILED, finished_at=database_now(connection), error=DIED)
    )
    result = connection.execute(
        insert(table).values(
            table_id=table_id,
            recipe=recipe,
            recipe_digest=recipe_digest,
            state=RUNNING,
            owner=owner,
            started_at=database_now(connection),
        )
    )
    key = result.inserted_primary_key
    return int(key[0]) if key else 0


def finish_scan(connection: Connection, tables: Tables, scan_id: int, report: ScanReport) -> None:
    """Write what a scan found."""
    connection.execute(
        update(tables.scan)
        .where(tables.scan.c.id == scan_id)
        .values(
            state=FINISHED,
            finished_at=database_now(connection),
            row_count=report.rows,
            report=json.dumps(asdict(report)),
        )
    )


def fail_scan(connection: Connection, tables: Tables, owner: str, error: str) -> None:
    """Write that the scan of this owner ended early, and why; nothing where it had finished before."""
    connection.execute(
        update(tables.scan)
        .where(tables.scan.c.owner == owner, tables.scan.c.state != FINISHED)
        .values(state=FAILED, finished_at=database_now(connection), error=error)
    )


@dataclass(frozen=True)
class FinishedScan:
    """The latest scan that found an answer: when it began (UTC), its rows, and how long it took."""

    started_at: datetime
    rows: int
    seconds: float


def last_finished(connection: Connection, tables: Tables, table_id: int) -> FinishedScan | None:
    """The latest scan of a table that came to its end."""
    table = tables.scan
    query = (
        select(table.c.started_at, table.c.row_count, table.c.report)
        .where(table.c.table_id == table_id, table.c.state == FINISHED)
        .order_by(table.c.id.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else FinishedScan(row[0], int(row[1]), float(json.loads(row[2])["seconds"]))


def past_scans(
    connection: Connection, tables: Tables, table_id: int, scanner: str | None, limit: int
) -> list[PastScan]:
    """The scans of a table, the latest first.

    Args:
        connection: to our tables.
        tables: ours.
        table_id: the watched table's number.
        scanner: who holds its lease; a scan of anybody else has died, though nobody has written it down yet.
        limit: how many at most.
    """
    table = tables.scan
    now = database_now(connection)
    columns = ("owner", "state", "started_at", "finished_at", "report", "error")
    query = (
        select(*(table.c[name] for name in columns))
        .where(table.c.table_id == table_id)
        .order_by(table.c.id.desc())
        .limit(limit)
    )
    return [_past_scan(row, scanner, now) for row in connection.execute(query)]


def _past_scan(row: Row[Any], scanner: str | None, now: datetime) -> PastScan:
    is_dead = row.state == RUNNING and row.owner != scanner
    found = json.loads(row.report) if row.report else {}
    return PastScan(
        started_at=row.started_at,
        finished_at=row.finished_at,
        state=FAILED if is_dead else row.state,
        seconds=round(((row.finished_at or now) - row.started_at).total_seconds(), 3),
        rows=found.get("rows"),
        pairs_gained=found.get("pairs_gained"),
        pairs_lost=found.get("pairs_lost"),
        groups_changed=found.get("groups_changed"),
        error=DIED if is_dead else row.error,
    )
