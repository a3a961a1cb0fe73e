"""`db-dedup explain`: why two rows are a duplicate pair, or why not."""

from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from db_dedup.amounts import counted
from db_dedup.cli.marked_tokens import marked_tokens
from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.output import print_json
from db_dedup.cli.side_by_side import append_left, append_right, beside, has_colour
from db_dedup.cli.terminal import visible
from db_dedup.cli.texts import Full
from db_dedup.engines.embedded.applied_rule import REJECTED, SIMHASH
from db_dedup.records import ExplainedColumn, ExplainedRow, Explanation, RuleTest, Verdict

_VERDICTS: Final = {
    Verdict.COPIES: "copies: they agree in every weighted column",
    Verdict.DUPLICATE_PAIR: "a duplicate pair",
    Verdict.NO_PAIR: "not a pair",
    Verdict.TOO_LITTLE_TEXT: "too little text to judge",
}


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
    """Say why rows A and B of TABLE are a duplicate pair, or why not, by the rule of the last scan.

    A key that begins with a minus goes after --, one of several columns is a JSON array: '["north","17"]'.
    """
    with open_table(config, url, table, store=store_url) as dedup:
        explanation = dedup.explain(key_a, key_b)
    if as_json:
        print_json(asdict(explanation))
        return
    console = Console(highlight=False)
    a, b = explanation.row_a, explanation.row_b
    colour, distance = has_colour(console), explanation.distance
    rows = [_table_row(column, distance, colour, full) for column in explanation.columns]
    console.print(beside(f"row {a.row_key}", f"row {b.row_key}", rows))
    for line in _lines(explanation):
        console.print(Text(line), soft_wrap=True)


def _table_row(
    column: ExplainedColumn, distance: int | None, colour: bool, full: bool
) -> tuple[str, Text, Text]:
    name = f"{visible(column.name)}\nweight {column.weight}"
    if distance and column.differing_bits is not None:
        name += f"\n{column.differing_bits:.1f} of\n{counted(distance, 'bit')}"
    left = marked_tokens(column.tokens_a, append_left, colour, full)
    return name, left, marked_tokens(column.tokens_b, append_right, colour, full)


def _lines(explanation: Explanation) -> list[str]:
    """What is to be said below the texts."""
    shown = ", ".join(f"{name} {value:.3f}" for name, value in explanation.similarities.items())
    return [
        f"Rows {_key(explanation.row_a)} and {_key(explanation.row_b)}: {_verdict(explanation)}.",
        *(f"  {_proposer(proposer)}" for proposer in explanation.proposers),
        *(f"  {_test(test, explanation)}" for test in explanation.tests),
        f"Similarities: {shown}.",
        _groups(explanation),
        _stored(explanation),
        *(_left_out(column) for column in explanation.columns if column.left_out_a or column.left_out_b),
        *(_state(row) for row in (explanation.row_a, explanation.row_b) if row.state != "unchanged"),
    ]


def _verdict(explanation: Explanation) -> str:
    said = _VERDICTS[explanation.verdict]
    if explanation.verdict is Verdict.NO_PAIR:
        failed = [test.name for test in explanation.tests if not test.passed]
        if not any(proposer.passed for proposer in explanation.proposers):
            failed = [proposer.name for proposer in explanation.proposers] + failed
        return f"{said}, because of {' and '.join(failed)}"
    if explanation.verdict is Verdict.TOO_LITTLE_TEXT:
        rows = (explanation.row_a, explanation.row_b)
        short = [f"row {_key(row)} has {row.features} features" for row in rows if row.fingerprint is None]
        return f"{said}: {', '.join(short)}"
    return said


def _proposer(proposer: RuleTest) -> str:
    if proposer.value is None:
        return f"failed  {proposer.name}: a row has no fingerprint"
    if proposer.name == SIMHASH:
        within = f"{proposer.value:.0f} of 64 bits differ, at most {proposer.limit:.0f} may"
        return f"{_passed(proposer)}  {proposer.name}, radius: {within}"
    wanted = f", at least {proposer.limit:.0f} wanted" if proposer.limit and proposer.limit > 1 else ""
    return f"{_passed(proposer)}  {proposer.name}: {proposer.value:.0f} in common{wanted}"


def _test(test: RuleTest, explanation: Explanation) -> str:
    if test.value is not None:
        return f"{_passed(test)}  {test.name}: {test.value:.3f}, at least {test.limit:g} needed"
    if test.name == REJECTED:
        return f"{_passed(test)}  {test.name}: somebody has said that they are no duplicates"
    values = [", ".join(map(visible, row.within)) or "-" for row in (explanation.row_a, explanation.row_b)]
    agree = f"both {values[0]}" if test.passed else f"{values[0]} and {values[1]}"
    return f"{_passed(test)}  {test.name}: {agree}"


def _passed(test: RuleTest) -> str:
    return "passed" if test.passed else "failed"


def _groups(explanation: Explanation) -> str:
    a, b = explanation.row_a, explanation.row_b
    if explanation.in_same_group:
        is_pair = explanation.verdict in (Verdict.COPIES, Verdict.DUPLICATE_PAIR)
        though = "" if is_pair else ", although they are no pair: other rows connect them"
        return f"Groups: both are in group {visible(str(a.group_id))}{though}."
    said = (
        f"row {_key(row)} is in " + (f"group {visible(row.group_id)}" if row.group_id else "no group")
        for row in (a, b)
    )
    return f"Groups: {', '.join(said)}."


def _stored(explanation: Explanation) -> str:
    link = explanation.stored
    if link is None:
        said = "no link between them"
        if explanation.is_abridged:
            said += ": their group is abridged to the pairs that connect it"
    elif link.kind == "copies":
        said = "copies"
    else:
        similarity = "" if link.similarity is None else f", similarity {link.similarity:.3f}"
        said = f"a pair, distance {link.distance}{similarity}"
    if link and link.found_at:
        said += f", found {link.found_at:%Y-%m-%d %H:%M} UTC"
    if link:
        said += "".join(
            f"; row {_key(row)} as a copy of row {visible(row.copy_of)}"
            for row in (explanation.row_a, explanation.row_b)
            if row.copy_of
        )
    agrees = "agrees" if explanation.agrees else "does not agree"
    return f"Stored answer: {said}. It {agrees} with the texts as they are now."


def _left_out(column: ExplainedColumn) -> str:
    """What is not shown of texts of megabytes, with --full neither."""
    counts = f"{column.left_out_a:,} and {column.left_out_b:,}"
    return (
        f"Column {visible(column.name)} is long: {counts} tokens of the two texts are not shown, "
        "far from the first differences. They were compared like the others."
    )


def _state(row: ExplainedRow) -> str:
    return {
        "changed": f"Row {_key(row)} has changed since it was last fingerprinted.",
        "new": f"Row {_key(row)} has come since the last scan.",
    }[row.state]


def _key(row: ExplainedRow) -> str:
    return visible(row.row_key)
