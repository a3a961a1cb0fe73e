"""`db-dedup pairs`: the duplicate pairs of a table."""

from typing import Annotated

import typer

from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import Format, FormatOption, print_rows
from db_dedup.cli.review import Review
from db_dedup.cli.texts import PAIR_COLUMNS, Full, Texts, pair_header, pair_line, read_pair_texts


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
    limit: Annotated[
        int | None, typer.Option(envvar="DB_DEDUP_LIMIT", min=1, help="Only the first so many.")
    ] = None,
    texts: Texts = False,
    full: Full = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the duplicate pairs of TABLE, the earlier-received row first."""
    with open_table(config, url, table, store=store_url) as dedup:
        found = dedup.pairs(expand, limit)
        if not texts:
            print_rows(PAIR_COLUMNS, ((p.key_a, p.key_b, p.distance, p.similarity) for p in found), form)
            return
        reader = dedup.texts()
        with_texts = read_pair_texts(reader, found)
        if form is Format.TABLE:
            Review(reader.columns, full).print_pairs(with_texts)
        else:
            lines = (pair_line(*pair, len(reader.columns)) for pair in with_texts)
            print_rows(pair_header(reader.columns), lines, form)
