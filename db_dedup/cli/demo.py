"""`db-dedup demo`: the main job on made-up petitions, from an empty folder to groups side by side."""

import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from shutil import which
from typing import Annotated, Final

import typer
from rich.console import Console
from sqlalchemy import Column, DateTime, Integer, MetaData, String, Table, Text, insert, make_url, select
from sqlalchemy.engine import Connection, Engine

from db_dedup.app import Database, Deduplicator
from db_dedup.cli.shared.terminal import TerminalProgress, say
from db_dedup.config import Settings
from db_dedup.errors import ConfigError
from db_dedup.frames.csv_file import write_csv
from db_dedup.plurals import counted
from db_dedup.present.scan_words import report_lines
from db_dedup.present.side_by_side import side_by_side
from db_dedup.sample import Sample, generate_petitions
from db_dedup.translation import tr

DATABASE_NAME: Final = "petitions.db"
CSV_NAME: Final = "petitions.csv"
SETTINGS_NAME: Final = "dedup.toml"
SETTINGS: Final = f"""\
[database]
url = "sqlite:///{DATABASE_NAME}"

[tables.petitions]
key = "id"
order = "created_at"
preset = "balanced"
# Petitions of two regions are never the same matter, however alike their words:
within = "region"

[tables.petitions.columns]
title = {{ kind = "text" }}
content = {{ kind = "text" }}
"""
_NEXT: Final = """
Next, in {folder}:
  db-dedup groups petitions --limit 10   # the largest groups
  db-dedup pairs petitions --format csv  # all pairs, for a program
  db-dedup file {csv}            # the same petitions from a file, without a database
  echo '{{"title": "...", "content": "...", "region": "..."}}' | db-dedup check petitions
  sqlite3 {database} 'SELECT * FROM dedup_duplicates_of_petitions LIMIT 5'
With your own database: db-dedup init --url sqlite:///your.db, then scan --dry-run, upgrade and scan."""
_SHOWN_GROUPS = 3

petitions = Table(
    "petitions",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("title", String(200), nullable=False),
    Column("content", Text, nullable=False),
    Column("region", String(50)),
    Column("channel", String(50)),
    Column("petitioner", String(50)),
    Column("phone", String(50)),
    Column("created_at", DateTime, nullable=False),
)


def demo(
    folder: Annotated[
        Path, typer.Option(envvar="DB_DEDUP_DEMO_FOLDER", help="Where the demo's files go.", file_okay=False)
    ] = Path("db-dedup-demo"),
    rows: Annotated[
        int, typer.Option(envvar="DB_DEDUP_DEMO_ROWS", min=10, max=1_000_000, help="How many petitions.")
    ] = 5000,
    seed: Annotated[int, typer.Option(envvar="DB_DEDUP_DEMO_SEED", help="Seed of the random generator.")] = 1,
) -> None:
    """Make some thousands of petitions in a SQLite file, find their duplicates and show some."""
    _prepare_folder(folder)
    sample = generate_petitions(rows, seed)
    (folder / SETTINGS_NAME).write_text(SETTINGS, encoding="utf-8")
    _write_csv(folder / CSV_NAME, sample)
    database_url = make_url("sqlite://").set(database=str(folder / DATABASE_NAME))
    with closing(Database(database_url, create=True)) as database:
        with database.engine.begin() as connection:
            fill(connection, sample)
        say(
            "made {petitions} in {file}, {pairs} of them duplicates",
            petitions=counted(rows, "petition"),
            file=folder / DATABASE_NAME,
            pairs=counted(len(sample.pairs), "pair"),
        )
        watched = Settings.from_file(folder / SETTINGS_NAME).watched("petitions")
        with TerminalProgress() as progress:
            dedup = Deduplicator(database, watched, progress=progress)
            dedup.upgrade()
            report = dedup.scan()
        for line in report_lines(report):
            say(line)
        _show_groups(database.engine, dedup)
        _show_score(dedup, sample)
    _say_next(folder)


def fill(connection: Connection, sample: Sample) -> None:
    """Make the petitions table and put the sample in."""
    petitions.create(connection)
    names = petitions.columns.keys()
    rows = [{name: getattr(petition, name) for name in names} for petition in sample.petitions]
    connection.execute(insert(petitions), rows)


def _write_csv(path: Path, sample: Sample) -> None:
    """Write the same petitions as a file, for `db-dedup file`."""
    names = petitions.columns.keys()
    write_csv(path, names, ([getattr(petition, name) for name in names] for petition in sample.petitions))


def _prepare_folder(folder: Path) -> None:
    """Remove the data of an earlier demo; its settings, by which it is known, are written again.

    Raises:
        ConfigError: a file in the folder may be somebody's own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = {CSV_NAME, DATABASE_NAME, f"{DATABASE_NAME}-journal"}
    named = {SETTINGS_NAME, *data}
    ours = named if _has_our_settings(folder) else set()
    others = (path.name for path in folder.iterdir() if path.name not in ours)
    strangers = sorted(others, key=lambda name: (name in named, name))
    if strangers:
        raise ConfigError(
            "{folder} holds files that are not the demo's ({stranger}): choose another --folder",
            folder=folder,
            stranger=strangers[0],
        )
    for name in data:
        (folder / name).unlink(missing_ok=True)


def _has_our_settings(folder: Path) -> bool:
    path = folder / SETTINGS_NAME
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace") == SETTINGS


def _show_groups(engine: Engine, dedup: Deduplicator) -> None:
    """Print some groups whose members are not all exact duplicates: the representative beside a member."""
    console = Console(highlight=False)
    not_shown = {group.representative_key for group in dedup.groups()}
    rest = len(not_shown) - _SHOWN_GROUPS
    with engine.connect() as connection:
        for pair in dedup.pairs():
            if pair.distance == 0 or pair.key_a not in not_shown or len(not_shown) == rest:
                continue
            not_shown.remove(pair.key_a)
            a, b = (_petition(connection, key) for key in (pair.key_a, pair.key_b))
            rows = [
                (name, _one_line(a[name]), _one_line(b[name])) for name in ("title", "content", "created_at")
            ]
            console.print(
                side_by_side(tr("petition {key}", key=pair.key_a), tr("petition {key}", key=pair.key_b), rows)
            )
            console.print(
                tr(
                    "{distance} of 64 bits differ, similarity {similarity:.2f}\n",
                    distance=pair.distance,
                    similarity=pair.similarity,
                )
            )


def _petition(connection: Connection, key: str) -> dict[str, object]:
    row = connection.execute(select(petitions).where(petitions.c.id == int(key))).mappings().one()
    return dict(row)


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def _show_score(dedup: Deduplicator, sample: Sample) -> None:
    """Print the recall for each kind of planted duplicate."""
    found = {frozenset((pair.key_a, pair.key_b)) for pair in dedup.pairs(expand=True)}
    planted = Counter(pair.kind for pair in sample.pairs)
    hit = Counter(p.kind for p in sample.pairs if frozenset((str(p.id_a), str(p.id_b))) in found)
    right = sum(hit.values())
    say(
        "found {pairs} of petitions, {share:.1%} of them planted as duplicates",
        pairs=counted(len(found), "pair"),
        share=right / max(1, len(found)),
    )
    say("planted pairs found, by kind of duplicate:")
    for kind, count in sorted(planted.items()):
        say(
            "  {kind:<12} {found:>6,} of {count:>6,}  {share:>6.1%}",
            kind=kind,
            found=hit[kind],
            count=count,
            share=hit[kind] / count,
        )


def _say_next(folder: Path) -> None:
    """Name the next commands, a line each, so that they can be pasted into a shell."""
    lines = tr(_NEXT, folder=folder, csv=CSV_NAME, database=DATABASE_NAME)
    for line in lines.splitlines():
        say(line)
    if which("db-dedup") is None:
        say("db-dedup is not on your PATH: write {program} for it", program=Path(sys.argv[0]).absolute())
