"""The state of a watched table: what `status` shows."""

from dataclasses import dataclass
from datetime import datetime

from db_dedup.records.frames import FrameStatus


@dataclass(frozen=True)
class HotBlock:
    """A block value that many rows share: each of them is compared with all the others."""

    block: int
    value: int
    rows: int


@dataclass(frozen=True)
class DeadChange:
    """A change that was given up; it waits for `retry`."""

    row_key: str
    operation: str
    attempts: int
    error: str
    failed_at: datetime


@dataclass(frozen=True)
class PastScan:
    """One scan of a table, finished or not.

    Attributes:
        finished_at: when it ended, also if it failed; None while it runs.
        state: "running", "finished" or "failed".
        seconds: from its start to its end, or until now.
        rows: how many rows it read; None unless it finished.
        pairs_gained: as in `ScanReport`, like the two that follow; None unless it finished.
    """

    started_at: datetime
    finished_at: datetime | None
    state: str
    seconds: float
    rows: int | None
    pairs_gained: int | None
    pairs_lost: int | None
    groups_changed: int | None
    error: str | None


@dataclass(frozen=True)
class TableStatus:
    """The state of a watched table.

    Attributes:
        too_little_text: rows without a fingerprint.
        too_little_share: of all rows, 0 to 1.
        group_sizes: "2", "3-5", "6-20", "21-100", "101+" -> how many groups have so many rows.
        queue_age_seconds: how long the oldest change has waited; None if the queue is empty.
        dead_changes: how many changes were given up; `latest_dead` has some of them.
        triggers: "intact", "not attached", "missing", "disabled", "altered", "stale", or "unknown" if they
            cannot be read; `trigger_faults` says what is wrong.
        last_scan_finished: None while the last scan runs, and if it failed.
        scans: the latest first.
        hot_blocks: the block values that most rows shared at the last scan, exact duplicates not counted.
        answer_version: a number that each change of the answer increments.
        recipe_version: the recipe version of the answer; None before the first finished scan.
        is_outdated: whether this program has another recipe version, so that the table needs a scan.
        frames: the frozen list; None if the settings leave no frames out.
    """

    table: str
    is_scanned: bool
    recipe_version: int | None
    is_outdated: bool
    rows: int
    fingerprints: int
    too_little_text: int
    too_little_share: float
    copies: int
    pairs: int
    groups: int
    grouped_rows: int
    group_sizes: dict[str, int]
    largest_group: int
    loose_groups: int
    abridged_groups: int
    hot_blocks: tuple[HotBlock, ...]
    queue_length: int
    queue_age_seconds: float | None
    dead_changes: int
    latest_dead: tuple[DeadChange, ...]
    attached_at: datetime | None
    triggers: str
    trigger_faults: tuple[str, ...]
    answer_version: int
    last_scan_started: datetime | None
    last_scan_finished: datetime | None
    last_scan_state: str | None
    last_scan_error: str | None
    scans: tuple[PastScan, ...]
    frames: FrameStatus | None = None
