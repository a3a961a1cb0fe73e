"""The record of full scans: when each began, how it ended, what it found."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from db_dedup.records import FrameReport, HotBlock, PastScan, ScanReport
from db_dedup.schema.tables import Tables
from db_dedup.schema.types import UtcNow
from db_dedup.store.clock import database_now
from db_dedup.store.watched_tables import is_held

RUNNING, FINISHED, FAILED = "running", "finished", "failed"
DIED = "the scan process died before it could record an error"


def recipe_of_last_scan(
    connection: Connection, tables: Tables, table_id: int, recipe_digest: str
) -> int | None:
    """Return the number that the last scan worked on; None if it was not of this recipe."""
    table = tables.scan
    query = (
        select(table.c.recipe, table.c.recipe_digest)
        .where(table.c.table_id == table_id)
        .order_by(table.c.id.desc())
        .limit(1)
    )
    last = connection.execute(query).one_or_none()
    return int(last.recipe) if last is not None and last.recipe_digest == recipe_digest else None


def recipe_to_build(connection: Connection, tables: Tables, table_id: int, recipe_digest: str) -> int:
    """Return the number under which to build a recipe that does not serve yet.

    If the last scan was of the same recipe, its number is used again and its rows are reused. Otherwise the
    number was never used before.
    """
    last = recipe_of_last_scan(connection, tables, table_id, recipe_digest)
    return unused_recipe(connection, tables, table_id) if last is None else last


def unused_recipe(connection: Connection, tables: Tables, table_id: int) -> int:
    """Return the number of a recipe that was never used before."""
    # The record of scans alone is not enough: somebody may have emptied it.
    scan, watched, frames = tables.scan, tables.watched_table, tables.frame_list
    fingerprint = tables.fingerprint
    used = (
        select(func.max(scan.c.recipe)).where(scan.c.table_id == table_id),
        select(func.max(fingerprint.c.recipe)).where(fingerprint.c.table_id == table_id),
        select(func.max(frames.c.recipe)).where(frames.c.table_id == table_id),
        select(watched.c.recipe).where(watched.c.id == table_id),
    )
    return max(connection.execute(query).scalar_one() or 0 for query in used) + 1


def is_building(connection: Connection, tables: Tables, name: str, recipe: int | None) -> bool:
    """Return whether a scan of a watched table is building another recipe than this one, which serves."""
    scan, watched = tables.scan, tables.watched_table
    query = (
        select(scan.c.id)
        .join(watched, watched.c.id == scan.c.table_id)
        .where(
            watched.c.name == name,
            is_held(tables, database_now(connection)),
            scan.c.state == RUNNING,
            scan.c.recipe != recipe,
        )
    )
    return connection.execute(query).first() is not None


def begin_scan(
    connection: Connection, tables: Tables, table_id: int, recipe: int, recipe_digest: str, owner: str
) -> int:
    """Record that a scan begins, and that scans whose process died have failed. Return its number.

    The table's triggers are there before it begins, whatever the stored time: if that is in the future, the
    clock has been set back since they were made.
    """
    table, watched, now = tables.scan, tables.watched_table, database_now(connection)
    connection.execute(
        update(watched).where(watched.c.id == table_id, watched.c.attached_at > now).values(attached_at=now)
    )
    connection.execute(
        update(table)
        .where(table.c.table_id == table_id, table.c.state == RUNNING)
        .values(state=FAILED, finished_at=now, error=DIED)
    )
    result = connection.execute(
        insert(table).values(
            table_id=table_id,
            recipe=recipe,
            recipe_digest=recipe_digest,
            state=RUNNING,
            owner=owner,
            started_at=now,
        )
    )
    key = result.inserted_primary_key
    return int(key[0]) if key else 0


def move_scan(connection: Connection, tables: Tables, scan_id: int, recipe: int) -> None:
    """Record that a scan builds another recipe than it began with."""
    connection.execute(update(tables.scan).where(tables.scan.c.id == scan_id).values(recipe=recipe))


def finish_scan(connection: Connection, tables: Tables, scan_id: int, report: ScanReport) -> None:
    """Record what a scan found."""
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
    """Record that the scan of this owner failed, and why; a finished scan stays as it is."""
    connection.execute(
        update(tables.scan)
        .where(tables.scan.c.owner == owner, tables.scan.c.state != FINISHED)
        .values(state=FAILED, finished_at=database_now(connection), error=error)
    )


@dataclass(frozen=True)
class FinishedScan:
    """The latest finished scan: when it began (UTC), rows, seconds, frames, hot blocks, the engine's name.

    Attributes:
        is_of_future: it began at a later time than it is now: the clock has been set back since.
    """

    started_at: datetime
    rows: int
    seconds: float
    frames: FrameReport | None = None
    hot_blocks: tuple[HotBlock, ...] = ()
    engine: str | None = None
    is_of_future: bool = False

    def is_after(self, attached_at: datetime) -> bool:
        """Return whether it certainly began after the triggers of the table were made at this time."""
        return not self.is_of_future and self.started_at >= attached_at


def last_finished(connection: Connection, tables: Tables, table_id: int) -> FinishedScan | None:
    """Return the latest finished scan of a table."""
    table = tables.scan
    query = (
        select(table.c.started_at, table.c.row_count, table.c.report, UtcNow().label("asked_at"))
        .where(table.c.table_id == table_id, table.c.state == FINISHED)
        .order_by(table.c.id.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    report = json.loads(row.report)
    hot_blocks = tuple(HotBlock(**hot) for hot in report.get("hot_blocks", ()))
    seconds = float(report["seconds"])
    frames, engine = _frames_of(report), report.get("engine")
    is_of_future = row.started_at > row.asked_at
    return FinishedScan(row.started_at, int(row.row_count), seconds, frames, hot_blocks, engine, is_of_future)


def last_frames(connection: Connection, tables: Tables) -> dict[str, FrameReport]:
    """Return table name -> what its latest finished scan reported of frames, in one query.

    A table without a finished scan, or whose settings leave no frames out, has no entry.
    """
    scan, watched = tables.scan, tables.watched_table
    latest = select(func.max(scan.c.id)).where(scan.c.state == FINISHED).group_by(scan.c.table_id)
    query = (
        select(watched.c.name, scan.c.report)
        .join(scan, scan.c.table_id == watched.c.id)
        .where(scan.c.id.in_(latest))
    )
    found = {name: _frames_of(json.loads(report)) for name, report in connection.execute(query)}
    return {name: frames for name, frames in found.items() if frames is not None}


def _frames_of(report: dict[str, Any]) -> FrameReport | None:
    return FrameReport(**report["frames"]) if report.get("frames") else None


def past_scans(
    connection: Connection, tables: Tables, table_id: int, scanner: str | None, limit: int
) -> list[PastScan]:
    """Return the scans of a table, the latest first.

    Args:
        connection: to our tables.
        tables: ours.
        table_id: the watched table's number.
        scanner: who holds its lease; a running scan of any other owner has died, though that is not recorded
            yet.
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
        # The clock may have been set back since it began.
        seconds=max(0.0, round(((row.finished_at or now) - row.started_at).total_seconds(), 3)),
        rows=found.get("rows"),
        pairs_gained=found.get("pairs_gained"),
        pairs_lost=found.get("pairs_lost"),
        groups_changed=found.get("groups_changed"),
        error=DIED if is_dead else row.error,
    )
