"""`db-dedup status`: where each watched table stands."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from db_dedup.amounts import counted
from db_dedup.cli.differences import changes_of
from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, Url, open_database
from db_dedup.cli.output import print_json, print_table
from db_dedup.cli.terminal import say
from db_dedup.errors import UnknownNameError
from db_dedup.records import PastScan, TableStatus

_DEAD_COLUMNS: Final = ("row_key", "operation", "attempts", "failed_at", "error")
_APART: Final = ("group_sizes", "hot_blocks", "latest_dead", "trigger_faults", "scans", "last_scan_started")
"""Fields that come out otherwise than one value in one line."""


def status(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE...]", help="Only these watched tables.", show_default=False),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    dead: Annotated[
        bool,
        typer.Option("--dead", envvar="DB_DEDUP_DEAD", help="Also show the latest dead changes and why."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show where each watched table stands: answer, queue, triggers, last scans."""
    with open_database(config, url, store_url) as database:
        found = _chosen(database.status(), tables or ())
    if as_json:
        print_json([asdict(entry) for entry in found])
        return
    if not found:
        say("no table is watched yet")
    for entry in found:
        print_table((entry.table, ""), _lines(entry))
        if dead and entry.latest_dead:
            print_table(
                _DEAD_COLUMNS,
                ([getattr(change, name) for name in _DEAD_COLUMNS] for change in entry.latest_dead),
            )


def _chosen(found: list[TableStatus], names: Sequence[str]) -> list[TableStatus]:
    """The entries of these tables in the order asked for; all of them where none is named."""
    by_name = {entry.table: entry for entry in found}
    for name in names:
        if name not in by_name:
            raise UnknownNameError("watched table", name, by_name)
    return [by_name[name] for name in dict.fromkeys(names)] or found


def _lines(entry: TableStatus) -> Iterator[tuple[str, str]]:
    """Each field under its name in JSON; lists are drawn out, a line an entry."""
    for name, value in asdict(entry).items():
        if name not in ("table", *_APART):
            yield name, _readable(name, value)
        if name == "groups":
            yield "group_sizes", _sizes(entry.group_sizes)
        if name == "is_outdated" and entry.is_outdated:
            yield "", f"run `db-dedup scan {entry.table}`: worker, check, explain and label wait for it"
        if name == "abridged_groups":
            for hot in entry.hot_blocks:
                yield "hot_block", f"block {hot.block}, value {hot.value}: {counted(hot.rows, 'row')}"
        if name == "triggers":
            for fault in entry.trigger_faults:
                yield "", fault
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
    return ", ".join(f"{count:,} of {label}" for label, count in sizes.items() if count) or "none"


def _scan(scan: PastScan) -> str:
    line = f"{scan.started_at:%Y-%m-%d %H:%M} UTC, {scan.state}, {scan.seconds:,.1f} s"
    if scan.rows is not None:
        line += f", {counted(scan.rows, 'row')}; {changes_of(scan)}"
    return f"{line}: {scan.error}" if scan.error else line
