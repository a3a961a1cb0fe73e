"""`db-dedup file`: the duplicates in a CSV, Excel or Parquet file, without a database."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from db_dedup.cli.shared.options import MOST, Force, Full, is_given
from db_dedup.cli.shared.output import print_json
from db_dedup.cli.shared.review import Review
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.config import DEFAULT_PRESET, PRESETS
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.frames.files import (
    check_database,
    check_output,
    check_rows,
    is_csv,
    is_workbook,
    read_file,
    write_file,
)
from db_dedup.frames.groups import RowGroups
from db_dedup.frames.sheet import Sheet
from db_dedup.frames.sheet_duplicates import (
    SheetDuplicates,
    check_columns,
    find_in_sheet,
    propose_columns,
    risks_of_sheet,
)
from db_dedup.plurals import counted
from db_dedup.present.scan_words import report_lines
from db_dedup.present.texts import read_member_texts, read_neighbours
from db_dedup.records import ScanReport
from db_dedup.translation import Phrase, joined

_MEMBERS_SHOWN = 5


def file(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV, Excel or Parquet file.")],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            envvar="DB_DEDUP_COLUMN",
            help="Compare this column; may be given again. Left out, the columns of texts are compared.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            envvar="DB_DEDUP_OUT",
            help="Write the same rows with group, group size and representative: .csv, .xlsx or .parquet.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    within: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DB_DEDUP_WITHIN",
            help="Duplicates must agree in this column; may be given again.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(envvar="DB_DEDUP_PRESET", help="The rule: balanced, strict or tweet.")
    ] = DEFAULT_PRESET,
    threshold: Annotated[
        float | None,
        typer.Option(
            envvar="DB_DEDUP_FILE_THRESHOLD",
            help="Two texts are duplicates from this similarity on, 0 to 1; that of the rule if not given.",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            envvar="DB_DEDUP_ENCODING",
            help="Encoding of a CSV file, such as gb18030; detected if not given.",
            show_default=False,
        ),
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option(
            envvar="DB_DEDUP_SHEET",
            help="Sheet of a workbook; the first one that is not hidden if not given.",
            show_default=False,
        ),
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            envvar="DB_DEDUP_DATABASE",
            help="Keep the rows and the answer in this new SQLite file.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_LIMIT", min=0, max=MOST, help="Show so many groups, the largest first."
        ),
    ] = 10,
    full: Full = False,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="DB_DEDUP_JSON", help="Print every group as JSON.")
    ] = False,
) -> None:
    """Find the duplicates in FILE and show them side by side; the file itself is only read."""
    started = time.monotonic()
    _refuse_unused(context, path)
    _refuse_unwritable(out, database, force, path)
    rows = read_file(path, encoding, sheet)
    if out is not None:
        check_rows(out, rows)
    _say_what_was_read(rows)
    chosen = columns or _proposed(rows)
    settings: dict[str, Any] = {"preset": preset, "within": within or ()}
    if threshold is not None:
        settings["threshold"] = threshold
    check_columns(rows, chosen, settings)
    say("compared: {columns}", columns=joined(", ", chosen))
    with (
        TerminalProgress() as progress,
        find_in_sheet(rows, chosen, settings, database, progress) as found,
    ):
        if out is not None:
            write_file(out, rows, found.groups)
        if limit and not as_json:
            _show_groups(found, limit, full)
        report = _with_seconds(found.report, time.monotonic() - started)
        if as_json:
            print_json(_as_json(rows, chosen, found.groups, report))
        for line in report_lines(replace(report, table=path.name)):
            say(line)
        for risk in risks_of_sheet(rows, found):
            say("warning: {risk}", risk=risk)
    if out is not None:
        say("wrote {path}", path=out)
    if database is not None:
        say(
            "wrote {path}: the table {table} and the view {view}",
            path=database,
            table=found.dedup.name,
            view=found.view,
        )


def _with_seconds(report: ScanReport, seconds: float) -> ScanReport:
    """Return the report of a scan with the seconds of the whole command; reading the file is in the rest."""
    parts = dict(report.parts or {})
    if parts:
        parts["other"] += seconds - report.seconds
    return replace(report, seconds=seconds, parts=parts or None)


def _say_what_was_read(rows: Sheet) -> None:
    say("{source}, {rows}", source=rows.description, rows=counted(len(rows.rows), "row"))
    for note in rows.notes:
        say(note)


def _refuse_unused(context: typer.Context, path: Path) -> None:
    """Refuse options that say how to read a file of another kind, or that the preset does not use.

    Raises:
        ConfigError: one of them is given, or there is no such preset.
    """
    if is_given(context, "sheet") and not is_workbook(path):
        raise ConfigError("{path} is no workbook: leave --sheet out", path=path)
    if is_given(context, "encoding") and not is_csv(path):
        raise ConfigError("{path} is no CSV file: leave --encoding out", path=path)
    preset = context.params["preset"]
    if preset not in PRESETS:
        raise UnknownNameError(Phrase("preset"), preset, PRESETS)
    if is_given(context, "threshold") and PRESETS[preset].similarity == "none":
        raise ConfigError("the preset does not compare the texts: leave --threshold out")


def _refuse_unwritable(out: Path | None, database: Path | None, force: bool, path: Path) -> None:
    """Refuse files that could not be written at the end, before the work begins."""
    if out is not None:
        check_output(out, "--out", force, path)
    if database is not None:
        check_database(database, out)


def _proposed(rows: Sheet) -> list[str]:
    """Return the columns of texts; report the others with the reason why they are left out."""
    choices = propose_columns(rows)
    chosen = [choice.name for choice in choices if choice.is_chosen]
    for choice in choices:
        if not choice.is_chosen:
            say("left out: {name} ({reason})", name=choice.name, reason=choice.reason)
    if not chosen:
        known = joined(", ", rows.names)
        raise ConfigError(
            "no column holds texts to compare: name one with --column; there are {known}", known=known
        )
    return chosen


def _show_groups(found: SheetDuplicates, limit: int, full: bool) -> None:
    groups = found.dedup.groups(limit)
    reader = found.dedup.texts()
    members = read_member_texts(found.dedup, reader, groups, 1 + _MEMBERS_SHOWN)
    Review(reader.columns, full).print_groups(groups, read_neighbours(reader, groups, members))


def _as_json(rows: Sheet, chosen: Sequence[str], groups: RowGroups, report: ScanReport) -> dict[str, Any]:
    return {
        "file": rows.description,
        "compared": list(chosen),
        "report": asdict(report),
        "groups": [
            {"group": group[0], "size": len(group), "rows": group} for group in groups.members(rows.first_row)
        ],
    }
