"""The state of a watched table in words."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from db_dedup.plurals import counted
from db_dedup.present.frame_words import state_lines
from db_dedup.present.scan_words import changes_of
from db_dedup.records import PastScan, TableStatus
from db_dedup.translation import STATUS, language, named, tr

_SHOWN_APART: Final = (
    *("group_sizes", "hot_blocks", "latest_dead", "trigger_faults"),
    *("scans", "last_scan_started", "frames"),
)
"""Fields that are not shown as one value in one line."""

_STATES: Final = ("triggers", "last_scan_state")
"""Fields whose value is a name of the program, which is translated."""
_OUTDATED: Final = "run `db-dedup scan {table}`: worker, check, explain and label wait for it"
_HOT_BLOCK: Final = "block {block}, value {value}: {rows}"
_SIZE: Final = "{count:,} of {label}"


def status_lines(entry: TableStatus) -> Iterator[tuple[str, str]]:
    """Yield (what a field is called, its value), and a line for each entry of a list."""
    for name, value in asdict(entry).items():
        if name not in ("table", *_SHOWN_APART):
            yield _name(name), _readable(name, value)
        if name == "groups":
            yield _name("group_sizes"), _sizes(entry.group_sizes)
        if name == "is_outdated" and entry.is_outdated:
            yield "", tr(_OUTDATED, table=entry.table)
        if name == "abridged_groups":
            for hot in entry.hot_blocks:
                rows = counted(hot.rows, "row")
                yield _name("hot_block"), tr(_HOT_BLOCK, block=hot.block, value=hot.value, rows=rows)
        if name == "triggers":
            for fault in entry.trigger_faults:
                yield "", tr(fault)
    yield from state_lines(entry.table, entry.frames)
    for scan in entry.scans:
        yield _name("scan"), _scan(scan)


def _name(name: str) -> str:
    """Return what a field is called."""
    return named(STATUS, name, language())


def _readable(name: str, value: Any) -> str:
    match value:
        case None:
            return tr("none") if name == "queue_age_seconds" else ""
        case bool():
            return tr("yes" if value else "no")
        case float() if name == "too_little_share":
            return f"{value:.2%}"
        case float() | int():
            return f"{value:,}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return named(STATUS, str(value), language()) if name in _STATES else str(value)


def _sizes(sizes: dict[str, int]) -> str:
    shown = (tr(_SIZE, count=count, label=label) for label, count in sizes.items() if count)
    return tr(", ").join(shown) or tr("none")


def _scan(scan: PastScan) -> str:
    line = tr(
        "{started_at:%Y-%m-%d %H:%M} UTC, {state}, {seconds:,.1f} s",
        started_at=scan.started_at,
        state=named(STATUS, scan.state, language()),
        seconds=scan.seconds,
    )
    if scan.rows is not None:
        line = tr(
            "{scan}, {rows}; {changes}", scan=line, rows=counted(scan.rows, "row"), changes=changes_of(scan)
        )
    return tr("{scan}: {error}", scan=line, error=scan.error) if scan.error else line
