"""`db-dedup scan`: every duplicate of a table."""

from dataclasses import asdict

from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, TableName, Url, open_table
from db_dedup.cli.output import print_json
from db_dedup.cli.terminal import TerminalProgress, say
from db_dedup.records import ScanReport


def scan(table: TableName, config: Config = DEFAULT_CONFIG, url: Url = None, as_json: AsJson = False) -> None:
    """Find every duplicate of TABLE and switch the views to the new answer."""
    with TerminalProgress() as progress, open_table(config, url, table, progress) as dedup:
        try:
            report = dedup.scan()
        except KeyboardInterrupt:
            say("stopped: the last complete answer stands; scan again for a new one")
            raise
    if as_json:
        print_json(asdict(report))
    tell_report(report)


def tell_report(report: ScanReport) -> None:
    """What a scan found, in three lines."""
    say(
        f"{report.table}: {report.rows:,} rows in {report.seconds:.1f} s, "
        f"{report.too_little_text:,} with too little text to judge"
    )
    say(
        f"{report.groups:,} duplicate groups with {report.grouped_rows:,} rows: "
        f"{report.pairs:,} pairs and {report.copies:,} copies"
    )
    if report.rows_without_key:
        say(f"{report.rows_without_key:,} rows have no key (NULL) and were left out")
