"""`db-dedup scan`: find every duplicate of a table."""

from dataclasses import asdict
from typing import Annotated, Final

import typer

from db_dedup.cli.shared.differences import tell_differences
from db_dedup.cli.shared.interrupts import NOTHING_WRITTEN, report_when_stopped
from db_dedup.cli.shared.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.shared.output import print_json, print_table
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.errors import ConfigError
from db_dedup.present.frame_words import example_lines
from db_dedup.present.scan_words import cost_lines, report_lines
from db_dedup.records import ScanPreview, ScanReport

_STOPPED: Final = "the last complete answer is kept; scan again for a new one"


def scan(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            envvar="DB_DEDUP_PREVIEW",
            help="Only say how the answer would change: pairs gained and lost, groups merged and split.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            envvar="DB_DEDUP_DRY_RUN",
            help="Only say what would be found and what a scan costs: seconds, disk, locks, hottest blocks.",
        ),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            envvar="DB_DEDUP_REBUILD",
            help="Reuse nothing that is stored: segment every text, also of rows that have not changed.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find every duplicate of TABLE and switch the views to the new answer."""
    if (preview or dry_run) and rebuild:
        raise ConfigError("--preview and --dry-run reuse nothing that is stored: leave --rebuild out")
    with (
        TerminalProgress() as progress,
        open_table(config, url, table, progress, store_url) as dedup,
        report_when_stopped(NOTHING_WRITTEN if preview or dry_run else _STOPPED),
    ):
        if preview or dry_run:
            found = dedup.preview()
        else:
            report = dedup.scan(rebuild)
    if preview or dry_run:
        _print_preview(found, with_costs=dry_run, with_differences=preview, as_json=as_json)
        return
    if as_json:
        print_json(asdict(report))
    _tell(report)


def _tell(report: ScanReport) -> None:
    for line in report_lines(report):
        say(line)


def _print_preview(found: ScanPreview, *, with_costs: bool, with_differences: bool, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
    else:
        _tell(found.report)
        if with_costs:
            _tell_costs(found)
        if with_differences:
            _tell_changes(found)
    say("nothing was written")


def _tell_costs(found: ScanPreview) -> None:
    for line in example_lines(found.frame_examples):
        say(line)
    for line in cost_lines(found):
        say(line)
    for risk in found.risks:
        say("warning: {risk}", risk=risk)
    print_table(("block", "value", "rows"), ((h.block, h.value, h.rows) for h in found.hottest_blocks))


def _tell_changes(found: ScanPreview) -> None:
    if found.differences is None:
        say("the table has not been scanned yet: all of it would be new")
    else:
        tell_differences(found.differences)
