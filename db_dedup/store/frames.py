"""The frozen lists of frames: one for each recipe that leaves frames out."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from db_dedup.errors import ConfigError, FrameListError, ScanRunningError
from db_dedup.records.frames import NO_FRAMES, FrameList, FrameReport, FrameStatus
from db_dedup.schema.tables import Tables
from db_dedup.store.clock import database_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.watched_tables import StoredTable, find_table


@dataclass(frozen=True)
class StoredFrames:
    """A frozen list, and the sample that it was last measured on.

    Attributes:
        frames: the list.
        row_count: rows of the table when it was measured.
        sample_count: rows of the sample, exact duplicates once.
        measured_at: UTC; None before it is stored.
    """

    frames: FrameList
    row_count: int
    sample_count: int
    measured_at: datetime | None = None


def find_frames(
    connection: Connection, tables: Tables, table_id: int, recipe: int, name: str
) -> StoredFrames | None:
    """Return the list of a recipe; None if none is stored.

    Raises:
        FrameListError: the stored list is damaged.
    """
    table = tables.frame_list
    query = select(table).where(table.c.table_id == table_id, table.c.recipe == recipe)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    try:
        frames = FrameList.from_text(row.grams)
    except ConfigError:
        raise FrameListError(name, "damaged") from None
    if frames.digest != row.digest:
        raise FrameListError(name, "damaged")
    return StoredFrames(frames, int(row.row_count), int(row.sample_count), row.measured_at)


def require_frames(connection: Connection, tables: Tables, stored: StoredTable) -> StoredFrames | None:
    """Return the list of the recipe that serves; None if its settings need none.

    Raises:
        FrameListError: the list is damaged or missing.
        ScanRunningError: a scan has replaced the recipe since `stored` was read.
    """
    if not stored.watched.freezes_list or stored.recipe is None:
        return None
    name = stored.watched.name
    found = find_frames(connection, tables, stored.id, stored.recipe, name)
    if found is None:
        now = find_table(connection, tables, name)
        if now is not None and now.recipe != stored.recipe:
            raise ScanRunningError("a scan of {name!r} has just replaced its answer: try again", name=name)
        raise FrameListError(name, "missing")
    return found


def serving_frames(connection: Connection, tables: Tables, stored: StoredTable) -> FrameList:
    """Return the frozen list of the recipe that serves; raises what `require_frames` raises."""
    found = require_frames(connection, tables, stored)
    return NO_FRAMES if found is None else found.frames


def put_frames(
    connection: Connection, tables: Tables, table_id: int, recipe: int, measured: StoredFrames
) -> None:
    """Store the list of a recipe, in place of the one that is stored."""
    table = tables.frame_list
    drop_frames(connection, tables, table_id, {recipe})
    connection.execute(
        insert(table).values(
            table_id=table_id,
            recipe=recipe,
            digest=measured.frames.digest,
            row_count=measured.row_count,
            sample_count=measured.sample_count,
            grams=measured.frames.as_text(),
            measured_at=database_now(connection),
        )
    )


def drop_frames(connection: Connection, tables: Tables, table_id: int, recipes: Collection[int]) -> None:
    """Drop the lists of these recipes of a table."""
    table = tables.frame_list
    connection.execute(delete(table).where(table.c.table_id == table_id, table.c.recipe.in_(recipes)))


def drop_other_frames(connection: Connection, tables: Tables, table_id: int, recipe: int) -> None:
    """Drop the lists of all other recipes of a table."""
    table = tables.frame_list
    connection.execute(delete(table).where(table.c.table_id == table_id, table.c.recipe != recipe))


def frame_status(
    connection: Connection, tables: Tables, stored: StoredTable, last: FrameReport | None
) -> FrameStatus | None:
    """Describe the list of the recipe that serves; None if its settings leave no frames out.

    Args:
        connection: to our tables.
        tables: ours.
        stored: the table.
        last: what the last finished scan reported.
    """
    if not stored.watched.rule.frames:
        return None
    try:
        found = require_frames(connection, tables, stored)
    except FrameListError as error:
        return FrameStatus(error.state)
    except ScanRunningError:
        return None
    if found is None:
        return None
    return FrameStatus(
        "not measured" if last is not None and not last.is_measured else "measured",
        found.frames.column_count,
        found.frames.gram_count,
        None if last is None else last.rows,
        None if last is None else last.drift,
        last is not None and last.has_drifted and last.waits,
        stored.watched.frame_drift == "wait",
        found.row_count,
        found.measured_at,
    )


class FrameSize(NamedTuple):
    """How many rows a table had when its frames were measured, and how many of them the sample had."""

    row_count: int
    sample_count: int


def read_size(connection: Connection, tables: Tables, table_id: int, recipe: int) -> FrameSize | None:
    """Return on how many rows the list of a recipe was measured; None if no list is stored."""
    table = tables.frame_list
    query = select(table.c.row_count, table.c.sample_count).where(
        table.c.table_id == table_id, table.c.recipe == recipe
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else FrameSize(int(row.row_count), int(row.sample_count))


def count_rows(connection: Connection, store: FingerprintStore, *, canonical_only: bool) -> int:
    """Return how many rows are stored; those that can take part in pairs, if `canonical_only`."""
    row = store.tables.fingerprint
    query = select(func.count()).select_from(row).where(store.mine)
    if canonical_only:
        query = query.where(row.c.copy_of.is_(None), row.c.fingerprint.is_not(None))
    return int(connection.execute(query).scalar_one())
