"""`db-dedup verify`: is the stored answer what a fresh full scan gives?"""

from dataclasses import asdict

import typer

from db_dedup.amounts import counted
from db_dedup.cli.differences import tell_differences
from db_dedup.cli.interrupts import NOTHING_WRITTEN, told_when_stopped
from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import print_json, print_table
from db_dedup.cli.terminal import TerminalProgress, say
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
        told_when_stopped(NOTHING_WRITTEN),
    ):
        found = dedup.verify()
    if as_json:
        print_json({**asdict(found), "is_right": found.is_right})
    else:
        _tell(found)
    if not found.is_right:
        raise typer.Exit(1)


def _tell(found: Verification) -> None:
    for line in found.drift:
        say(line)
    if found.waiting:
        handled = f"`db-dedup worker {found.table} --drain` handles them"
        say(f"{counted(found.waiting, 'change waits', 'changes wait')} in the queue: {handled}")
    if found.rows.count:
        one, many = "row is not stored as it is now", "rows are not stored as they are now"
        say(f"{counted(found.rows.count, one, many)}, such as:")
        print_table(("row_key",), ((key,) for key in found.rows.samples))
    if found.answer.count:
        tell_differences(found.answer)
    if not (found.rows.count or found.answer.count):
        say(f"{found.table}: the answer is what a fresh full scan gives")
    elif not found.waiting:
        # A row whose digest is right would be taken over with whatever fingerprint it has.
        afresh = "--afresh " if found.rows.count else ""
        say(f"{found.table}: differs; `db-dedup scan {afresh}{found.table}` mends it")
    else:
        say(f"{found.table}: differs; verify again when the queue is empty")
