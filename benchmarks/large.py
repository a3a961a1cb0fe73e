"""One large table from the first scan to the views: time, memory and disk of each step, on one machine.

The rows are made-up petitions in sets of 100,000, each with its own seed. With a folder of data they
are articles of law, multiplied with fresh edits, or with `--size copies=3` texts that join sentences of
articles, of which 3 % are near-copies of an earlier one. Each command runs by the command line in a process
of its own; checks and views are timed in this one. The figures are kept in a CSV file, and drawn from it, so
that sizes can be measured one by one.

    python -m benchmarks large --data FOLDER --size rows=10000000 --size copies=3
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter

from sqlalchemy import Engine, TableClause, bindparam, column, func, select, table, update

from benchmarks.growth import (
    FOLDER,
    SETTINGS,
    TEXTS,
    file_bytes,
    fill,
    made_petitions,
    multiplied_articles,
    store_bytes,
    warm_up,
)
from benchmarks.indexes import total_bytes
from benchmarks.joined_articles import MOST_EDITS as MOST_EDITS_OF_A_COPY
from benchmarks.joined_articles import JoinedArticles
from benchmarks.large_figures import LargeFigures, draw
from benchmarks.materials import MOST_EDITS, edited
from benchmarks.processes import measure
from benchmarks.servers import each_database
from benchmarks.timing import median_seconds
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import Settings

_CHECKS = 20
_RUNS = 3
_ROWS_A_STATEMENT = 1_000
_PARTS = ("reading", "matching", "writing", "other")


@dataclass(frozen=True)
class Sizes:
    """How many rows, and how many changes the worker handles.

    Attributes:
        rows: of the table.
        changes: for the worker.
        copies: with a folder of data, how many of a hundred rows are near-copies of an earlier one; the
            others join sentences of articles. 0: whole articles, multiplied.
        later: 1 for all steps, 0 for the first scan alone.
        matching_mb: the setting of the engine; 0 for its default.
        abridge_above: the setting of the table; 0 for its default. If each article comes so often that
            all pairs of its copies are too many for the disk, only those that connect them are stored.
    """

    rows: int = 1_000_000
    changes: int = 5_000
    copies: int = 0
    later: int = 1
    matching_mb: int = 0
    abridge_above: int = 0


SMALL = Sizes(rows=1_000, changes=50)


def run(
    data: Path | None,
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = ("PostgreSQL",),
    keep_in: Path | None = None,
) -> None:
    """Print a line for each step in each database.

    The figures are kept in a folder and drawn there; those of the small size only if it is given.
    """
    if sizes.rows > SMALL.rows:
        keep_in = keep_in or FOLDER
    warm_up()
    kind, make_texts = _texts(data, sizes)
    kind = ", ".join([kind, *_changed_settings(sizes)])
    for name, url in each_database(databases):
        print(f"{name}: {sizes.rows:,} {kind}, default preset; memory of db_dedup's processes")
        print(f"{'step':<32} {'seconds':>10} {'CPU s':>9} {'PSS MB':>8} {'anon MB':>8} {'file MB':>8}")
        with tempfile.TemporaryDirectory() as folder, closing(Database(url, create=True)) as database:
            start = perf_counter()
            fill(database, make_texts())
            print(f"{'fill the table':<32} {perf_counter() - start:>10.1f}", flush=True)
            print(f"{'the table on disk':<32} {total_bytes(database, TEXTS) / 1e6:>10,.0f} MB", flush=True)
            figures = LargeFigures(kind, name, sizes.rows, keep_in and keep_in / "large.csv")
            _measure(database, Path(folder), url, sizes, figures)
        if figures.file:
            plot = figures.file.with_name(f"large-{_short_name(sizes, data)}-{name.lower()}.svg")
            draw(figures, f"Seconds of each step by rows: {kind}, {name}", plot)


def _changed_settings(sizes: Sizes) -> list[str]:
    """Return the settings that are not the default."""
    return [
        f"{name} = {value}" for name in ("matching_mb", "abridge_above") if (value := getattr(sizes, name))
    ]


def _short_name(sizes: Sizes, data: Path | None) -> str:
    name = "petitions" if data is None else "joined-articles" if sizes.copies else "articles"
    return "-".join([name, *(setting.replace(" = ", "-") for setting in _changed_settings(sizes))])


def _texts(data: Path | None, sizes: Sizes) -> tuple[str, Callable[[], Iterator[str]]]:
    """Return (what the texts are, what makes them)."""
    if data is None:
        return "made-up petitions", lambda: made_petitions(sizes.rows)
    if not sizes.copies:
        kind = "articles of law, multiplied with fresh edits"
        return kind, lambda: multiplied_articles(data, sizes.rows)
    copies = f"{sizes.copies} % near-copies with 1 to {MOST_EDITS_OF_A_COPY} edits"
    kind = f"texts of sentences of articles of law, {copies}"
    return kind, lambda: JoinedArticles(data, sizes.copies).texts(sizes.rows)


def _measure(database: Database, folder: Path, url: str, sizes: Sizes, figures: LargeFigures) -> None:
    before = file_bytes(database)
    settings = SETTINGS.format(url=json.dumps(url))
    if sizes.matching_mb:
        settings += f"[engine]\nmatching_mb = {sizes.matching_mb}\n"
    if sizes.abridge_above:
        settings += f"[tables.texts]\nabridge_above = {sizes.abridge_above}\n"
    (folder / "dedup.toml").write_text(settings, encoding="utf-8")
    measure("db_dedup.cli", "upgrade", folder=folder)
    # Before the scan: the worker would otherwise begin with one.
    measure("db_dedup.cli", "attach", "texts", folder=folder)
    _scan(folder, "first scan", figures)
    print(f"{'tables of db_dedup on disk':<32} {store_bytes(database, before) / 1e6:>10,.0f} MB", flush=True)
    if not sizes.later:
        return
    watched = Settings.from_file(folder / "dedup.toml").watched("texts")
    _measure_reading(database, Deduplicator(database, watched), figures)
    step = max(1, sizes.rows // sizes.changes)
    _change(database.engine, step, 1 % step)
    worked = measure("db_dedup.cli", "worker", "texts", "--drain", folder=folder)
    figures.tell(f"worker, {sizes.rows // step:,} changes", worked)
    _change(database.engine, 100, 0)
    _scan(folder, "scan, 1 % changed", figures)


def _scan(folder: Path, step: str, figures: LargeFigures) -> None:
    """Scan, and print what it took as a whole and in each part."""
    report = folder / "report"
    arguments = ("scan", "texts", "--json")
    figures.tell(step, measure("db_dedup.cli", *arguments, output=report, folder=folder))
    parts = json.loads(report.read_text(encoding="utf-8"))["parts"]
    for part in _PARTS:
        figures.tell_seconds(f"{step}: {part}", parts[part])


def _measure_reading(database: Database, dedup: Deduplicator, figures: LargeFigures) -> None:
    """Time checks of stored texts, and the views."""
    with database.engine.connect() as connection:
        texts = connection.execute(select(TEXTS.c.text).where(TEXTS.c.id <= _CHECKS)).scalars().all()
    for value in texts:
        dedup.check({"text": value})
    checks = median_seconds(lambda: [dedup.check({"text": value}) for value in texts], _RUNS)
    figures.tell_seconds("check", checks / max(1, len(texts)))
    pairs, groups, members = (_view(database, name) for name in ("pairs", "groups", "members"))
    with database.engine.connect() as connection:
        group = connection.execute(select(groups.c.group_id).limit(1)).scalar()
        queries = {
            "view: 100 pairs": select(pairs).limit(100),
            "view: the 20 largest groups": select(groups).order_by(groups.c.size.desc()).limit(20),
            "view: number of groups": select(func.count()).select_from(groups),
            "view: members of a group": select(members).where(members.c.group_id == group),
        }
        for title, query in queries.items():
            seconds = median_seconds(lambda q=query: connection.execute(q).all(), _RUNS)  # type: ignore[misc]
            figures.tell_seconds(title, seconds)


def _change(engine: Engine, step: int, remainder: int) -> None:
    """Edit one to five characters of each row whose id has this remainder."""
    chance = Random(step)
    query = select(TEXTS.c.id, TEXTS.c.text).where(
        TEXTS.c.id % step == remainder, func.length(TEXTS.c.text) > MOST_EDITS
    )
    statement = update(TEXTS).where(TEXTS.c.id == bindparam("of")).values(text=bindparam("new"))
    with engine.begin() as connection:
        rows = connection.execute(query).all()
        for first in range(0, len(rows), _ROWS_A_STATEMENT):
            some = rows[first : first + _ROWS_A_STATEMENT]
            characters = "".join(text for _, text in some)
            changed = [
                {"of": row_id, "new": edited(text, 1 + i % MOST_EDITS, characters, chance)}
                for i, (row_id, text) in enumerate(some)
            ]
            connection.execute(statement, changed)


def _view(database: Database, name: str) -> TableClause:
    """Return one of the views; only these of its columns are read."""
    schema, prefix = ("dedup", "") if database.engine.dialect.name == "postgresql" else (None, "dedup_")
    columns = {
        "pairs": ("key_a", "key_b"),
        "groups": ("group_id", "size"),
        "members": ("group_id", "row_key"),
    }
    return table(f"{prefix}duplicate_{name}", *map(column, columns[name]), schema=schema)
