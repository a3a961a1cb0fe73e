"""`db-dedup calibrate`: what labelled pairs say of a table's settings."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from db_dedup.cli.shared.interrupts import NOTHING_WRITTEN, report_when_stopped
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    DuplicateLabel,
    Force,
    StoreUrl,
    TableName,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import check_page, print_json, print_table, write_page
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.jobs.review.label_file import read_labels
from db_dedup.present.calibration_page import calibration_page
from db_dedup.present.calibration_words import (
    SCORE_COLUMNS,
    length_words,
    proposal_lines,
    setting_words,
    share_words,
    summary_lines,
    toml_lines,
)
from db_dedup.records import Calibration, LengthScore, SettingScore
from db_dedup.translation import Phrase, tr


def calibrate(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_LABELS",
            help="A CSV file: key_a, key_b, label. Without it, the stored labels are used.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    duplicate_label: DuplicateLabel = None,
    unlabelled_are_wrong: Annotated[
        bool,
        typer.Option(
            "--unlabelled-are-wrong",
            envvar="DB_DEDUP_UNLABELLED_ARE_WRONG",
            help="The labels name every duplicate there is: any other pair that is found is wrong.",
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_HTML",
            help="Also write a page with plots, which needs no other file and holds no text of a row.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Judge the settings of TABLE by labelled pairs, and propose others where the labels support them.

    Writes nothing into the database.
    """
    check_page(html, force)
    given = None if labels is None else read_labels(labels, duplicate_label or ())
    with (
        TerminalProgress() as progress,
        open_table(config, url, table, progress, store_url) as dedup,
        report_when_stopped(NOTHING_WRITTEN),
    ):
        found = dedup.calibrate(given, unlabelled_are_wrong=unlabelled_are_wrong)
    if html is not None:
        write_page(html, calibration_page(found))
    if as_json:
        print_json({**asdict(found), "toml": toml_lines(found)})
    else:
        _tell(found)


def _tell(found: Calibration) -> None:
    for line in summary_lines(found):
        say(line)
    print_table(
        SCORE_COLUMNS,
        [
            (tr("now"), *_cells(found.now)),
            *([(tr("proposed"), *_cells(found.proposed))] if found.proposed != found.now else []),
        ],
    )
    say("now: {setting}", setting=setting_words(found.now.setting))
    if found.proposed != found.now:
        say("proposed: {setting}", setting=setting_words(found.proposed.setting))
    print_table((Phrase("characters"), *SCORE_COLUMNS[1:]), _length_rows(found.by_length[0]))
    for line in proposal_lines(found):
        say(line)


def _length_rows(scores: Iterable[LengthScore]) -> list[tuple[object, ...]]:
    return [(length_words(each), *_cells(each.score)) for each in scores]


def _cells(score: SettingScore) -> tuple[object, ...]:
    unlabelled = "?" if score.unlabelled is None else score.unlabelled
    counts = (score.right, score.wrong, score.missed, unlabelled)
    return (*counts, share_words(score.precision), share_words(score.recall), f"{score.f1:.3f}")
