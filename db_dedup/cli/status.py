"""`db-dedup status`: the state of each watched table."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Final

import typer

from db_dedup.app import Database, Deduplicator
from db_dedup.cli.shared.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, Url, open_database
from db_dedup.cli.shared.output import print_json, print_table
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import UnknownNameError
from db_dedup.present.frame_words import marked_text
from db_dedup.present.status_words import status_lines
from db_dedup.records import FrameExample, TableStatus
from db_dedup.translation import Phrase

_DEAD_COLUMNS: Final = ("row_key", "operation", "attempts", "failed_at", "error")


def status(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE...]", help="Only these watched tables.", show_default=False),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    dead: Annotated[
        bool,
        typer.Option("--dead", envvar="DB_DEDUP_DEAD", help="Also show the latest dead changes and why."),
    ] = False,
    frames: Annotated[
        bool,
        typer.Option(
            "--frames",
            envvar="DB_DEDUP_FRAMES",
            help="Also show rows as they are now, their frames in brackets.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the state of each watched table: answer, queue, triggers, last scans."""
    with open_database(config, url, store_url) as database:
        found = _chosen(database.status(), tables or ())
        examples = _examples(database, found) if frames else {}
    if as_json:
        shown = {name: {"frame_examples": [asdict(e) for e in some]} for name, some in examples.items()}
        print_json([asdict(entry) | shown.get(entry.table, {}) for entry in found])
        return
    if not found:
        say("no table is watched yet")
    for entry in found:
        print_table((entry.table, ""), status_lines(entry))
        if some := examples.get(entry.table):
            print_table(("row_key", "column", "text"), ((e.row_key, e.column, marked_text(e)) for e in some))
        if dead and entry.latest_dead:
            print_table(
                _DEAD_COLUMNS,
                ([getattr(change, name) for name in _DEAD_COLUMNS] for change in entry.latest_dead),
            )


def _examples(database: Database, found: Sequence[TableStatus]) -> dict[str, tuple[FrameExample, ...]]:
    """Return table -> rows that show its frames."""
    return {
        entry.table: Deduplicator(database, entry.table).frame_examples()
        for entry in found
        if entry.frames is not None and entry.frames.grams
    }


def _chosen(found: list[TableStatus], names: Sequence[str]) -> list[TableStatus]:
    """Return the entries of these tables in the order asked for; all of them where none is named."""
    by_name = {entry.table: entry for entry in found}
    for name in names:
        if name not in by_name:
            raise UnknownNameError(Phrase("watched table"), name, by_name)
    return [by_name[name] for name in dict.fromkeys(names)] or found
