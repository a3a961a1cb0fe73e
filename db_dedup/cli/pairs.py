"""`db-dedup pairs`: the duplicate pairs of a table."""

from typing import Annotated

import typer

from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import Format, FormatOption, print_rows

COLUMNS = ("key_a", "key_b", "distance", "similarity")


def pairs(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    expand: Annotated[
        bool,
        typer.Option(
            "--expand",
            envvar="DB_DEDUP_EXPAND",
            help="Every pair of rows: copies written out, abridged groups searched again.",
        ),
    ] = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the duplicate pairs of TABLE, the earlier-received row first."""
    with open_table(config, url, table, store=store_url) as dedup:
        found = dedup.pairs(expand)
        print_rows(COLUMNS, ((p.key_a, p.key_b, p.distance, p.similarity) for p in found), form)
