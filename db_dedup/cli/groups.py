"""`db-dedup groups`: the duplicate groups of a table."""

from typing import Annotated

import typer

from db_dedup.app import Deduplicator
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    Config,
    Full,
    StoreUrl,
    TableName,
    Texts,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import Format, FormatOption, print_rows
from db_dedup.cli.shared.review import Review
from db_dedup.present.texts import member_header, member_lines, read_member_texts, read_neighbours
from db_dedup.records import GroupSummary

COLUMNS = ("group_id", "size", "representative_key", "is_loose", "is_abridged")


def groups(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int | None,
        typer.Option(envvar="DB_DEDUP_LIMIT", min=1, max=MOST, help="Only so many, the largest first."),
    ] = None,
    texts: Texts = False,
    members: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_MEMBERS",
            min=1,
            max=MOST,
            help="With --texts in a table: rows beside each representative.",
        ),
    ] = 5,
    full: Full = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the duplicate groups of TABLE, the largest first."""
    with open_table(config, url, table, store=store_url) as dedup:
        found = dedup.groups(limit)
        if texts and form is Format.TABLE:
            _review(dedup, found, members, full)
        elif texts:
            _export(dedup, found, form)
        else:
            rows = ((g.group_id, g.size, g.representative_key, g.is_loose, g.is_abridged) for g in found)
            print_rows(COLUMNS, rows, form)


def _review(dedup: Deduplicator, found: list[GroupSummary], members: int, full: bool) -> None:
    """Print a block for each group."""
    reader = dedup.texts()
    rows = read_member_texts(dedup, reader, found, 1 + members)
    Review(reader.columns, full).print_groups(found, read_neighbours(reader, found, rows))


def _export(dedup: Deduplicator, found: list[GroupSummary], form: Format) -> None:
    """Print a line for each row of the groups."""
    reader = dedup.texts()
    rows = read_member_texts(dedup, reader, found)
    width = len(reader.columns)
    with_differences = form is Format.JSON
    lines = member_lines(rows, width, with_differences)
    print_rows(member_header(reader.columns, with_differences), lines, form)
