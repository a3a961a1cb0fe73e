"""`db-dedup export`: the rows of a table with their groups."""

from pathlib import Path
from typing import Annotated, cast

import typer

from db_dedup.app.table_export import EXPORT_ORDERS, ExportOrder, export_table
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    Config,
    Force,
    StoreUrl,
    TableName,
    Url,
    is_given,
    open_table,
)
from db_dedup.cli.shared.output import Format, FormatOption, print_rows
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import ConfigError
from db_dedup.frames.files import check_output, write_export
from db_dedup.present.scan_words import without_key_lines


def export(
    context: typer.Context,
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    output: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_OUTPUT",
            help="Write this file: .csv, .xlsx or .parquet. Left out, the rows are printed.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    only_duplicates: Annotated[
        bool,
        typer.Option(
            "--only-duplicates", envvar="DB_DEDUP_ONLY_DUPLICATES", help="Leave out rows without duplicates."
        ),
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            envvar="DB_DEDUP_COLUMNS",
            help="The columns of TABLE, divided by commas. Left out, all of them.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            envvar="DB_DEDUP_ORDER",
            help="group or key: the largest groups first, the rows of each as they were "
            "received; or by the key of TABLE.",
        ),
    ] = EXPORT_ORDERS[0],
    force: Force = False,
    form: FormatOption = Format.CSV,
) -> None:
    """Write the rows of TABLE with their groups to a CSV, Excel or Parquet file, or to stdout."""
    if output is not None:
        if is_given(context, "form"):
            raise ConfigError("the ending of --output decides what is written: leave --format out")
        check_output(output, "--output", force)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with open_table(config, url, table, store=store_url) as dedup:
        found = export_table(dedup, names, only_duplicates, cast("ExportOrder", order))
        if output is None:
            print_rows([column.name for column in found.columns], found.rows, form)
        else:
            write_export(output, found)
            say("wrote {path}", path=output)
        for line in without_key_lines(found.without_key()):
            say(line)
