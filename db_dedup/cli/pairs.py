"""`db-dedup pairs`: the duplicate pairs of a table."""

from itertools import chain
from typing import Annotated, cast

import typer

from db_dedup.app.deduplicator import pair_columns as read_columns
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    Config,
    Full,
    Kinds,
    StoreUrl,
    TableName,
    Texts,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import Format, FormatOption, print_columns, print_rows
from db_dedup.cli.shared.review import Review
from db_dedup.present.texts import (
    PairExtras,
    pair_columns,
    pair_header,
    pair_line,
    read_pair_texts,
)
from db_dedup.records.kinds import Kind


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
            help="Every pair of rows: exact duplicates written out, abridged groups searched again.",
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option(envvar="DB_DEDUP_LIMIT", min=1, max=MOST, help="Only the first so many.")
    ] = None,
    kinds: Kinds = False,
    kind: Annotated[
        str | None,
        typer.Option(
            envvar="DB_DEDUP_KIND",
            help="Only pairs of these kinds, divided by commas: copy, edited, contained, partial.",
        ),
    ] = None,
    other_place: Annotated[
        bool | None,
        typer.Option(
            "--other-place/--no-other-place",
            envvar="DB_DEDUP_OTHER_PLACE",
            help="Only pairs whose two texts name different places, or only the other pairs.",
        ),
    ] = None,
    texts: Texts = False,
    full: Full = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Print the duplicate pairs of TABLE, the earlier-received row first."""
    with open_table(config, url, table, store=store_url) as dedup:
        wanted = None if kind is None else [cast("Kind", name.strip()) for name in kind.split(",")]
        found = read_columns(dedup, expand, limit, wanted, other_place)
        # JSON names its values, so more of them cannot shift those that a script reads.
        shows_kinds = kinds or form is Format.JSON
        if not texts:
            columns = pair_columns(shows_kinds)
            print_columns(columns, (part.values(columns) for part in found), form)
            return
        reader = dedup.texts()
        with_texts = read_pair_texts(reader, chain.from_iterable(part.pairs() for part in found))
        if form is Format.TABLE:
            Review(reader.columns, full).print_pairs(with_texts)
        else:
            shown = PairExtras(kinds=shows_kinds, differences=form is Format.JSON)
            lines = (pair_line(*pair, len(reader.columns), shown) for pair in with_texts)
            print_rows(pair_header(reader.columns, shown), lines, form)
