"""`db-dedup compare`: which method tells labelled pairs apart best."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from db_dedup.cli.shared.interrupts import NOTHING_WRITTEN, report_when_stopped
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    AsJson,
    Config,
    DuplicateLabel,
    Force,
    StoreUrl,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import (
    Format,
    FormatOption,
    check_page,
    print_json,
    print_rows,
    print_table,
    write_page,
)
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.errors import ConfigError
from db_dedup.jobs.review.label_file import read_labels, read_text_pairs
from db_dedup.methods.plan import STEPS, ComparisonPlan
from db_dedup.present.comparison_page import comparison_page
from db_dedup.present.comparison_words import (
    PARTS,
    RULES_TITLE,
    SCORE_COLUMNS,
    SHORT_COLUMNS,
    SHORT_COLUMNS_EXPLAINED,
    TIMES,
    all_rows,
    closing_lines,
    in_short_cells,
    rule_row,
    skipped_lines,
    summary_lines,
    toml_lines,
    trial_row,
    trial_tables,
)
from db_dedup.records import Comparison
from db_dedup.records.comparison import Part

_LIMIT: Final = 15
_Names = list[str] | None


def compare(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The watched table.", show_default=False)
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_PAIRS",
            help="A CSV file: text_a, text_b, label; with TABLE key_a, key_b, label. "
            "Without it, the stored labels of TABLE are used.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    duplicate_label: DuplicateLabel = None,
    segmenters: Annotated[
        _Names,
        typer.Option(
            "--segmenter",
            envvar="DB_DEDUP_SEGMENTER",
            help="Try this segmenter; may be given again. Left out, those of the papers.",
            show_default=False,
        ),
    ] = None,
    features: Annotated[
        _Names,
        typer.Option(
            "--features",
            envvar="DB_DEDUP_FEATURES",
            help="Try these features; may be given again. Left out, those of the papers.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        _Names,
        typer.Option(
            "--method",
            envvar="DB_DEDUP_METHOD",
            help="Try this method; may be given again. Left out, all.",
            show_default=False,
        ),
    ] = None,
    thresholds: Annotated[
        _Names,
        typer.Option(
            "--threshold",
            envvar="DB_DEDUP_THRESHOLD",
            help="METHOD=VALUE: judge this method at this threshold; may be given again. "
            "Left out, at each of a grid.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        str,
        typer.Option(
            envvar="DB_DEDUP_STEPS",
            help="What to vary, the first of each list being the fixed one: "
            "each list alone, two lists crosswise, all together.",
        ),
    ] = ",".join(STEPS),
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_LIMIT", min=0, max=MOST, help="Show so many combinations of each step."
        ),
    ] = _LIMIT,
    form: FormatOption = Format.TABLE,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_OUTPUT",
            help="Also write a page with threshold curves, which needs no other file and holds no text.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Compare segmenters, features and methods of five papers, and our rules, on labelled pairs.

    Writes nothing into the database. docs/reference/methods.md lists the names.
    """
    plan = _plan(segmenters, features, methods, thresholds, steps)
    check_page(output, force)
    with TerminalProgress() as progress, report_when_stopped(NOTHING_WRITTEN):
        if table is not None:
            labels = None if pairs is None else read_labels(pairs, duplicate_label or ())
            with open_table(config, url, table, progress, store_url) as dedup:
                found = dedup.compare(labels, plan)
        elif pairs is not None:
            from db_dedup.app.table_judging import compare_methods  # noqa: PLC0415 - loads much

            found = compare_methods(read_text_pairs(pairs, duplicate_label or ()), plan, progress=progress)
        else:
            raise ConfigError("nothing to compare by: name a labelled TABLE, or give a file of --pairs")
    if output is not None:
        write_page(output, comparison_page(found))
    if as_json:
        print_json({**asdict(found), "toml": toml_lines(found)})
        return
    for line in summary_lines(found):
        say(line)
    if form is Format.TABLE:
        _print_tables(found, limit)
    else:
        print_rows(SCORE_COLUMNS, all_rows(found), form)
    for line in (*skipped_lines(found), *closing_lines(found)):
        say(line)


def _plan(
    segmenters: _Names, features: _Names, methods: _Names, thresholds: _Names, steps: str
) -> ComparisonPlan:
    given: dict[str, Sequence[str]] = {"segmenters": segmenters or (), "features": features or ()}
    given["methods"] = methods or ()
    return ComparisonPlan(
        **{name: names for name, names in given.items() if names},
        thresholds=_thresholds(thresholds or ()),
        steps=[step.strip() for step in steps.split(",")],
    )


def _thresholds(given: Iterable[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            found.setdefault(name, []).append(float(value))
        except ValueError:
            name = ""
        if not name:
            raise ConfigError(
                "--threshold {text!r}: write METHOD=VALUE, such as jaccard=0.5 or simhash=3", text=text[:40]
            )
    return found


def _print_tables(found: Comparison, limit: int) -> None:
    say(SHORT_COLUMNS_EXPLAINED)
    is_whole = _print(RULES_TITLE, PARTS, map(rule_row, found.rules))
    for title, parts, trials in trial_tables(found):
        is_whole &= _print(title, parts, map(trial_row, trials[:limit]))
        if len(trials) > limit:
            say("{count:,} more: --limit, --format csv", count=len(trials) - limit)
    if not is_whole:
        say("this terminal has no room for the times: --format csv has them")


def _print(title: str, parts: Sequence[Part], rows: Iterable[tuple[Any, ...]]) -> bool:
    """Print the names of these parts and the scores; return whether all columns were printed."""
    places = [PARTS.index(part) for part in parts]
    cells = map(in_short_cells, rows)
    chosen = [(*(row[place] for place in places), *row[len(PARTS) :]) for row in cells]
    return print_table((*parts, *SHORT_COLUMNS), chosen, title, TIMES)
