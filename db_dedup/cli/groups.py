"""`db-dedup groups`: the duplicate groups of a table."""

from typing import Annotated

import typer

from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import Format, FormatOption, print_rows

COLUMNS = ("group_id", "size", "representative_key", "is_loose", "is_abridged")


def groups(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int | None, typer.Option(envvar="DB_DEDUP_LIMIT", min=1, help="Only so many, the largest first.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the duplicate groups of TABLE, the largest first."""
    with open_table(config, url, table, store=store_url) as dedup:
        found = dedup.groups(limit)
    rows = ((g.group_id, g.size, g.representative_key, g.is_loose, g.is_abridged) for g in found)
    print_rows(COLUMNS, rows, form)
