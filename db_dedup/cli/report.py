"""`db-dedup report`: the duplicates of a table as one page of HTML."""

from pathlib import Path
from typing import Annotated

import typer

from db_dedup.app import Deduplicator
from db_dedup.app.table_report import report_table
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    Config,
    Force,
    StoreUrl,
    TableName,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import check_page, write_page
from db_dedup.present.report_page import ShownGroups, report_page
from db_dedup.present.texts import read_member_texts

_MEMBERS_SHOWN = 4


def report(
    table: TableName,
    output: Annotated[
        Path,
        typer.Option(
            envvar="DB_DEDUP_OUTPUT", help="The page to write, such as report.html.", dir_okay=False
        ),
    ],
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts", envvar="DB_DEDUP_TEXTS", help="Show texts of rows; without it the page has none."
        ),
    ] = False,
    groups: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_GROUPS", min=0, max=MOST, help="Show so many groups, the largest first."
        ),
    ] = 10,
    by: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DB_DEDUP_BY",
            help="Count the rows by the values of this column, for which the table is read; may be given "
            "again. Left out, the columns of `within` and those that are compared as values.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the duplicates of TABLE in figures and plots as a page of HTML that needs no other file."""
    check_page(output, force)
    with open_table(config, url, table, store=store_url) as dedup:
        found = report_table(dedup, by or None)
        write_page(output, report_page(found, _shown(dedup, groups, texts)))


def _shown(dedup: Deduplicator, count: int, texts: bool) -> ShownGroups:
    largest = dedup.groups(count)
    if not texts:
        return ShownGroups(largest)
    reader = dedup.texts()
    members = list(read_member_texts(dedup, reader, largest, _MEMBERS_SHOWN))
    return ShownGroups(largest, reader.columns, members)
