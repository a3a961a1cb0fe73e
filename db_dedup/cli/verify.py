"""`db-dedup verify`: is the stored answer what a fresh full scan gives?"""

from dataclasses import asdict

import typer

from db_dedup.cli.shared.differences import tell_differences
from db_dedup.cli.shared.interrupts import NOTHING_WRITTEN, report_when_stopped
from db_dedup.cli.shared.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.shared.output import print_json, print_table
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.plurals import counted
from db_dedup.present.frame_words import drift_lines
from db_dedup.records import Verification


def verify(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Compare the answer with a fresh full scan, and view and triggers with what was made.

    Writes nothing. Exit code 0: all is right; 1: something differs.
    """
    with (
        TerminalProgress() as progress,
        open_table(config, url, table, progress, store_url) as dedup,
        report_when_stopped(NOTHING_WRITTEN),
    ):
        found = dedup.verify()
    if as_json:
        print_json({**asdict(found), "is_right": found.is_right})
    else:
        _tell(found)
    if not found.is_right:
        raise typer.Exit(1)


def _tell(found: Verification) -> None:
    if found.frames is not None:
        for line in drift_lines(found.table, found.frames, is_written=False):
            say("{line} (this does not count as a difference)", line=line)
    for line in found.drift:
        say(line)
    if found.waiting:
        say(
            "{changes} in the queue: `db-dedup worker {table} --drain` handles them",
            changes=counted(found.waiting, "change waits", "changes wait"),
            table=found.table,
        )
    if found.rows.count:
        one, many = "row is not stored as it is now", "rows are not stored as they are now"
        say("{rows}, such as:", rows=counted(found.rows.count, one, many))
        print_table(("row_key",), ((key,) for key in found.rows.samples))
    if found.answer.count:
        tell_differences(found.answer)
    if not (found.rows.count or found.answer.count):
        say("{table}: the answer is what a fresh full scan gives", table=found.table)
    elif not found.waiting:
        # A plain scan reuses the stored fingerprint of a row whose digest has not changed, even a wrong one.
        if found.rows.count:
            say("{table}: differs; `db-dedup scan --rebuild {table}` repairs it", table=found.table)
        else:
            say("{table}: differs; `db-dedup scan {table}` repairs it", table=found.table)
    else:
        say("{table}: differs; verify again when the queue is empty", table=found.table)
