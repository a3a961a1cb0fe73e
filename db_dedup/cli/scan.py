"""`db-dedup scan`: find every duplicate of a table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from db_dedup.app.engines import settings_for
from db_dedup.cli.shared.differences import tell_differences
from db_dedup.cli.shared.interrupts import NOTHING_WRITTEN, report_when_stopped
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    AsJson,
    Config,
    StoreUrl,
    TableName,
    Url,
    is_given,
    load_settings,
    open_table,
)
from db_dedup.cli.shared.output import print_json, print_table
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.config import EngineSettings
from db_dedup.errors import ConfigError
from db_dedup.present.frame_words import example_lines
from db_dedup.present.scan_words import cost_lines, report_lines
from db_dedup.records import ScanPreview, ScanReport
from db_dedup.translation import Phrase

_STOPPED: Final = Phrase("the last complete answer, if there is one, is kept; scan again for a new one")


def scan(
    context: typer.Context,
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            envvar="DB_DEDUP_PREVIEW",
            help="Only say how the answer would change: pairs gained and lost, groups merged and split.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            envvar="DB_DEDUP_DRY_RUN",
            help="Only say what would be found and what a scan costs: seconds, disk, locks, hottest blocks.",
        ),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            envvar="DB_DEDUP_REBUILD",
            help="Reuse nothing that is stored: segment every text, also of rows that have not changed.",
        ),
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            envvar="DB_DEDUP_ENGINE",
            help="What scans: embedded (this machine, the default) or spark (a cluster). "
            "Replaces the file's engine.",
            show_default=False,
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            envvar="DB_DEDUP_MASTER",
            help="The master of the cluster, as spark://host:7077.",
            show_default=False,
        ),
    ] = None,
    jars: Annotated[
        list[str] | None,
        typer.Option(
            "--jar",
            envvar="DB_DEDUP_SPARK_JARS",
            help="A jar with the JDBC driver of the database, for Spark; may be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find every duplicate of TABLE and switch the views to the new answer."""
    chosen = _engine(config, url, engine, master, jars)
    if (preview or dry_run) and rebuild:
        raise ConfigError("--preview and --dry-run reuse nothing that is stored: leave --rebuild out")
    if (preview or dry_run) and is_given(context, "engine"):
        raise ConfigError("--preview and --dry-run run with the embedded engine: leave --engine out")
    if (preview or dry_run) and (is_given(context, "master") or is_given(context, "jars")):
        raise ConfigError(
            "--preview and --dry-run run with the embedded engine: leave --master and --jar out"
        )
    with (
        TerminalProgress() as progress,
        open_table(config, url, table, progress, store_url) as dedup,
        report_when_stopped(NOTHING_WRITTEN if preview or dry_run else _STOPPED),
    ):
        if preview or dry_run:
            found = dedup.preview()
        else:
            report = dedup.scan(rebuild, chosen)
    if preview or dry_run:
        _print_preview(found, with_costs=dry_run, with_differences=preview, as_json=as_json)
        return
    if as_json:
        print_json(asdict(report))
    _tell(report)


def _engine(
    config: Path, url: str | None, name: str | None, master: str | None, jars: list[str] | None
) -> EngineSettings:
    """Return the settings of the engine: what the options say, over the file."""
    settings = load_settings(config, url)
    given = {"name": name, "master": master, "jars": tuple(jars or ())}
    of_file = EngineSettings() if settings is None else settings.engine
    if name is not None and name != of_file.name:
        of_file = settings_for(name, of_file)  # without those of another engine
    return of_file.model_copy(update={key: value for key, value in given.items() if value})


def _tell(report: ScanReport) -> None:
    for line in report_lines(report):
        say(line)


def _print_preview(found: ScanPreview, *, with_costs: bool, with_differences: bool, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
    else:
        _tell(found.report)
        if with_costs:
            _tell_costs(found)
        if with_differences:
            _tell_changes(found)
    say("nothing was written")


def _tell_costs(found: ScanPreview) -> None:
    for line in example_lines(found.frame_examples):
        say(line)
    for line in cost_lines(found):
        say(line)
    for risk in found.risks:
        say("warning: {risk}", risk=risk)
    if found.hottest_blocks:  # there are none where all rows have too little text
        print_table(
            (Phrase("block"), Phrase("value"), Phrase("rows")),
            ((h.block, h.value, h.rows) for h in found.hottest_blocks),
            title=Phrase("the most frequent values of the blocks of the fingerprints:"),
        )


def _tell_changes(found: ScanPreview) -> None:
    if found.differences is None:
        say("the table has not been scanned yet: all of it would be new")
    else:
        tell_differences(found.differences)
