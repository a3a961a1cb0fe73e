"""A first scan at the default preset, from ten thousand rows to a million: wall time, memory, store.

Each size is scanned by the command line in a process of its own. The figures are kept in a CSV file, so that
sizes can be measured one by one (`--size most_rows=30000`), and are drawn from it. Real texts are multiplied
with fresh edits: each round of them has other characters edited.
"""

import csv
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, Table, Text

from benchmarks.datasets import read_articles
from benchmarks.generated_petitions import make_part
from benchmarks.indexes import total_bytes
from benchmarks.materials import edited
from benchmarks.plot import log_log_svg
from benchmarks.processes import Measured, measure
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
FOLDER = Path(__file__).parent.parent / "docs" / "explanation"
COLUMNS = ("texts", "database", "rows", "wall_seconds", "cpu_seconds", "megabytes", "store_megabytes")
PLOTS = {
    "wall_seconds": ("Wall time of a first scan by rows", "seconds"),
    "megabytes": ("Peak memory of a first scan by rows", "anonymous MB of all its processes"),
    "store_megabytes": ("Size of the db_dedup tables by rows", "MB"),
}
"""Column -> title of its plot, and of its y axis."""

TEXTS = Table(
    "texts",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("text", Text),
)
SETTINGS = '[database]\nurl = {url}\n[tables.texts.columns]\ntext = {{ kind = "text" }}\n'
_PETITIONS_A_PART = 100_000
_MOST_EDITS = 12
_WARM_UP_ROWS = 500

Key = tuple[str, str, int]
"""Texts, database, rows."""


@dataclass(frozen=True)
class Sizes:
    """What is measured.

    Attributes:
        most_rows: smaller sizes are measured, too.
        least_rows: to measure the larger sizes alone.
        petitions: 0 to measure the articles of law alone.
    """

    most_rows: int = 1_000_000
    least_rows: int = 10_000
    petitions: int = 1


SMALL = Sizes(most_rows=300, least_rows=300)


def run(
    data: Path | None,
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
    folder: Path | None = None,
) -> None:
    """Measure each size in each database and print the figures.

    They are put into the file of the folder and drawn there; those of the small size only if it is given.
    """
    if sizes.most_rows > SMALL.most_rows:
        folder = folder or FOLDER
    chosen = [rows for rows in SIZES if sizes.least_rows <= rows <= sizes.most_rows] or [sizes.most_rows]
    made_up = "made-up petitions"
    names = [*([made_up] if sizes.petitions else []), *(["articles of law"] if data else [])]
    figures = read_figures(folder / "growth.csv") if folder else {}
    print_heading()
    for name in names:
        for rows in chosen:
            for database, url in each_database(databases):
                texts = multiplied_articles(data, rows) if data and name != made_up else made_petitions(rows)
                found = scan_once(url, texts)
                figures[name, database, rows] = found
                print_scan(name, database, rows, found)
                if folder:
                    write_figures(folder / "growth.csv", figures)
    if folder:
        draw(folder, figures)


def print_heading() -> None:
    """Print what the lines of `print_scan` are about."""
    print("first scan at the default preset, by the command line; memory: anonymous, of db_dedup's processes")
    print(f"{'texts':<18} {'database':<11} {'rows':>9} {'wall s':>8} {'CPU s':>8} {'MB':>7} {'store MB':>9}")


def print_scan(name: str, database: str, rows: int, found: tuple[float, ...]) -> None:
    """Print the figures of a scan.

    Args:
        name: of the texts.
        database: its name.
        rows: how many.
        found: by `scan_once`.
    """
    wall, cpu, megabytes, store = found
    figures = f"{wall:>8.1f} {cpu:>8.1f} {megabytes:>7.0f} {store:>9.1f}"
    print(f"{name:<18} {database:<11} {rows:>9,} {figures}", flush=True)


def scan_once(url: str, texts: Iterator[str]) -> tuple[float, ...]:
    """Fill an empty database and scan it; return the figures in the order of `COLUMNS`."""
    warm_up()
    with tempfile.TemporaryDirectory() as name, closing(Database(url, create=True)) as database:
        fill(database, texts)
        before = file_bytes(database)
        taken = scan(url, Path(name))
        size = store_bytes(database, before)
    return taken.wall, taken.cpu, taken.anonymous, size / 1e6


def warm_up() -> None:
    """Scan a small table: the first scan of all compiles."""
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{Path(name) / 'texts.db'}"
        with closing(Database(url, create=True)) as database:
            fill(database, made_petitions(_WARM_UP_ROWS))
        scan(url, Path(name))


def scan(url: str, folder: Path) -> Measured:
    """Make our tables, then scan; the scan is measured."""
    settings = SETTINGS.format(url=json.dumps(url))
    (folder / "dedup.toml").write_text(settings, encoding="utf-8")
    measure("db_dedup.cli", "upgrade", folder=folder)
    return measure("db_dedup.cli", "scan", "texts", folder=folder)


def fill(database: Database, texts: Iterator[str]) -> None:
    """Make the table of texts."""
    with database.dialect.write_transaction(database.engine) as connection:
        TEXTS.create(connection)
        database.dialect.bulk_insert(connection, TEXTS, ("id", "text"), enumerate(texts, 1))


def store_bytes(database: Database, others: int) -> int:
    """Return what our tables take; a SQLite file is measured as a whole, and had `others` bytes before."""
    tables = database.tables.metadata.sorted_tables
    if database.engine.dialect.name == "sqlite":
        return total_bytes(database, tables[0]) - others
    return sum(total_bytes(database, table) for table in tables)


def file_bytes(database: Database) -> int:
    """Return what a SQLite file takes; 0 for a database of a server, whose tables are measured one by one."""
    if database.engine.dialect.name != "sqlite":
        return 0
    return total_bytes(database, TEXTS)


def read_figures(file: Path) -> dict[Key, tuple[float, ...]]:
    """Return what was measured before."""
    if not file.exists():
        return {}
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        (row["texts"], row["database"], int(row["rows"])): tuple(float(row[name]) for name in COLUMNS[3:])
        for row in rows
    }


def write_figures(file: Path, figures: Mapping[Key, Sequence[float]]) -> None:
    """Write all that was measured, sorted."""
    with file.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key in sorted(figures):
            writer.writerow([*key, *(f"{figure:.1f}" for figure in figures[key])])


def draw(folder: Path, figures: Mapping[Key, Sequence[float]]) -> None:
    """Draw a plot of each figure."""
    for place, column in enumerate(COLUMNS[3:]):
        if column not in PLOTS:
            continue
        title, axis = PLOTS[column]
        lines: dict[str, dict[int, float]] = {}
        for (texts, database, rows), found in figures.items():
            lines.setdefault(f"{database}, {texts}", {})[rows] = found[place]
        plot = folder / f"growth-{column.replace('_', '-')}.svg"
        plot.write_text(log_log_svg(lines, title, "rows", axis), encoding="utf-8")
        print(f"drawn in {plot}")


def made_petitions(rows: int) -> Iterator[str]:
    """Yield made-up petitions, in sets of 100,000, each with its own seed."""
    for part in range(-(-rows // _PETITIONS_A_PART)):
        for petition in make_part(part, min(_PETITIONS_A_PART, rows - part * _PETITIONS_A_PART)):
            yield petition.content


def multiplied_articles(data: Path, rows: int) -> Iterator[str]:
    """Yield articles of law; after the last one they come again with fresh edits."""
    rng = random.Random(1)
    articles = [str(row["text"]) for row in read_articles(data)]
    rng.shuffle(articles)
    characters = [c for article in articles[:1000] for c in article if c.isalpha()]
    for number in range(rows):
        article = articles[number % len(articles)]
        if number < len(articles) or not article:
            yield article
        else:
            yield edited(article, rng.randint(1, _MOST_EDITS), characters, rng)
