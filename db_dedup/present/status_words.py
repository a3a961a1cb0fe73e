"""The state of a watched table in words."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from db_dedup.amounts import counted
from db_dedup.present.frame_words import state_lines
from db_dedup.present.scan_words import changes_of
from db_dedup.records import PastScan, TableStatus

_APART: Final = (
    *("group_sizes", "hot_blocks", "latest_dead", "trigger_faults"),
    *("scans", "last_scan_started", "frames"),
)
"""Fields that come out otherwise than one value in one line."""

_OUTDATED: Final = "run `db-dedup scan {table}`: worker, check, explain and label wait for it"
_HOT_BLOCK: Final = "block {block}, value {value}: {rows}"
_SIZE: Final = "{count:,} of {label}"


def status_lines(entry: TableStatus) -> Iterator[tuple[str, str]]:
    """Each field under its name in JSON; lists are drawn out, a line an entry."""
    for name, value in asdict(entry).items():
        if name not in ("table", *_APART):
            yield name, _readable(name, value)
        if name == "groups":
            yield "group_sizes", _sizes(entry.group_sizes)
        if name == "is_outdated" and entry.is_outdated:
            yield "", _OUTDATED.format(table=entry.table)
        if name == "abridged_groups":
            for hot in entry.hot_blocks:
                rows = counted(hot.rows, "row")
                yield "hot_block", _HOT_BLOCK.format(block=hot.block, value=hot.value, rows=rows)
        if name == "triggers":
            for fault in entry.trigger_faults:
                yield "", fault
    yield from state_lines(entry.table, entry.frames)
    for scan in entry.scans:
        yield "scan", _scan(scan)


def _readable(name: str, value: Any) -> str:
    match value:
        case None:
            return "none" if name == "queue_age_seconds" else ""
        case bool():
            return "yes" if value else "no"
        case float() if name == "too_little_share":
            return f"{value:.2%}"
        case float() | int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return str(value)


def _sizes(sizes: dict[str, int]) -> str:
    shown = (_SIZE.format(count=count, label=label) for label, count in sizes.items() if count)
    return ", ".join(shown) or "none"


def _scan(scan: PastScan) -> str:
    line = "{started_at:%Y-%m-%d %H:%M} UTC, {state}, {seconds:,.1f} s".format(
        started_at=scan.started_at, state=scan.state, seconds=scan.seconds
    )
    if scan.rows is not None:
        line = "{scan}, {rows}; {changes}".format(
            scan=line, rows=counted(scan.rows, "row"), changes=changes_of(scan)
        )
    return f"{line}: {scan.error}" if scan.error else line
