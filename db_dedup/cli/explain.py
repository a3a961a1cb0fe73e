"""`db-dedup explain`: why two rows are a duplicate pair, or why not."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    Full,
    StoreUrl,
    TableName,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import print_json
from db_dedup.cli.shared.terminal import has_colour
from db_dedup.plurals import counted
from db_dedup.present.explanation_words import explained_differences, explanation_lines
from db_dedup.present.marked_tokens import marked_tokens
from db_dedup.present.side_by_side import append_left, append_right, beside
from db_dedup.present.visible import visible
from db_dedup.records import ExplainedColumn
from db_dedup.translation import tr


def explain(
    table: TableName,
    key_a: Annotated[str, typer.Argument(metavar="A", help="A row key.")],
    key_b: Annotated[str, typer.Argument(metavar="B", help="The other row's.")],
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Explain why rows A and B of TABLE are a duplicate pair, or why not, by the rule of the last scan.

    A key that begins with a minus goes after --, one of several columns is a JSON array: '["north","17"]'.
    """
    with open_table(config, url, table, store=store_url) as dedup:
        explanation = dedup.explain(key_a, key_b)
    if as_json:
        differences = {sort: only._asdict() for sort, only in explained_differences(explanation).items()}
        print_json({**asdict(explanation), "differences": differences})
        return
    console = Console(highlight=False)
    a, b = explanation.row_a, explanation.row_b
    colour, distance = has_colour(console), explanation.distance
    rows = [_table_row(column, distance, colour, full) for column in explanation.columns]
    console.print(beside(tr("row {key}", key=a.row_key), tr("row {key}", key=b.row_key), rows))
    for line in explanation_lines(explanation):
        console.print(Text(line), soft_wrap=True)


def _table_row(
    column: ExplainedColumn, distance: int | None, colour: bool, full: bool
) -> tuple[str, Text, Text]:
    name = f"{visible(column.name)}\n{tr('weight {weight}', weight=column.weight)}"
    if distance and column.differing_bits is not None:
        differing, bits = column.differing_bits, counted(distance, "bit")
        name += "\n" + tr("{differing:.1f} of\n{bits}", differing=differing, bits=bits)
    left = marked_tokens(column.tokens_a, column.text_a, column.text_b, append_left, colour, full)
    right = marked_tokens(column.tokens_b, column.text_b, column.text_a, append_right, colour, full)
    return name, left, right
