"""`db-dedup scan`: every duplicate of a table."""

from dataclasses import asdict
from typing import Annotated, Final

import typer

from db_dedup.amounts import counted
from db_dedup.cli.differences import tell_differences
from db_dedup.cli.interrupts import NOTHING_WRITTEN, told_when_stopped
from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import print_json, print_table
from db_dedup.cli.terminal import TerminalProgress, say
from db_dedup.errors import ConfigError
from db_dedup.records import ScanPreview, ScanReport

_STOPPED: Final = "the last complete answer stands; scan again for a new one"
_SUSPICIOUS_ROWS = 20
"""A smaller group that holds most rows may be right: the table is small."""


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
    afresh: Annotated[
        bool,
        typer.Option(
            "--afresh",
            envvar="DB_DEDUP_AFRESH",
            help="Segment every text, also of rows that have not changed since the last scan.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find every duplicate of TABLE and switch the views to the new answer."""
    if (preview or dry_run) and afresh:
        raise ConfigError("--preview and --dry-run always read everything afresh: leave --afresh out")
    with (
        TerminalProgress() as progress,
        open_table(config, url, table, progress, store_url) as dedup,
        told_when_stopped(NOTHING_WRITTEN if preview or dry_run else _STOPPED),
    ):
        if preview or dry_run:
            found = dedup.preview()
        else:
            report = dedup.scan(afresh)
    if preview or dry_run:
        _print_preview(found, with_costs=dry_run, with_differences=preview, as_json=as_json)
        return
    if as_json:
        print_json(asdict(report))
    tell_report(report)


def tell_report(report: ScanReport) -> None:
    """What a scan found, in three lines."""
    say(
        f"{report.table}: {counted(report.rows, 'row')} in {report.seconds:.1f} s, "
        f"{report.too_little_text:,} with too little text to judge"
    )
    if report.segmented < report.rows:
        say(f"{counted(report.segmented, 'text was', 'texts were')} segmented; the others had not changed")
    say(
        f"{counted(report.groups, 'duplicate group')} with {counted(report.grouped_rows, 'row')}: "
        f"{counted(report.pairs, 'pair')} and {counted(report.copies, 'copy', 'copies')}"
    )
    if report.rows_without_key:
        say(f"{counted(report.rows_without_key, 'row has', 'rows have')} no key (NULL), left out")
    if report.largest_group >= _SUSPICIOUS_ROWS and 2 * report.largest_group > report.rows:
        say(
            f"warning: one group holds {report.largest_group:,} of the {report.rows:,} rows: most of what is "
            "compared is the same in all rows, such as a form, a category or an official answer; "
            "compare only the columns that tell one matter from another"
        )


def _print_preview(found: ScanPreview, *, with_costs: bool, with_differences: bool, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
    else:
        tell_report(found.report)
        if with_costs:
            _tell_costs(found)
        if with_differences:
            _tell_changes(found)
    say("nothing was written")


def _tell_costs(found: ScanPreview) -> None:
    costs, matching = found.costs, found.matching_seconds
    reading = found.report.seconds - matching
    is_beside = found.is_new_recipe and found.differences is not None
    say(
        f"a scan takes about {costs.seconds:.1f} s: {reading:.1f} s to read and segment, "
        f"{matching:.1f} s to match, about {costs.writing_seconds:.1f} s to write"
        + ("" if found.is_new_recipe else "; it does not segment again what has not changed")
    )
    say(
        f"it writes {counted(costs.fingerprints, 'fingerprint')}, "
        f"{counted(costs.entries, 'band entry', 'band entries')} and {counted(costs.pairs, 'pair')}: "
        f"about {costs.bytes / 1e6:,.1f} MB of disk"
        + (", beside the stored answer, which is then removed" if is_beside else "")
    )
    for sentence in costs.locks:
        say(f"locks: {sentence}")
    print_table(("block", "value", "rows"), ((h.block, h.value, h.rows) for h in found.hottest_blocks))


def _tell_changes(found: ScanPreview) -> None:
    if found.differences is None:
        say("the table has not been scanned yet: all of it would be new")
    else:
        tell_differences(found.differences)
