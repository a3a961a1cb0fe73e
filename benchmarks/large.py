"""One large table from the first scan to the views: time, memory and disk of each step, on one machine.

The rows are made-up petitions in parts of 100,000 that know nothing of each other. With a folder of data they
are articles of law, multiplied with fresh edits, or with `--size copies=3` texts that join sentences of
articles, of which 3 % are near-copies of an earlier one. Each command runs by the command line in a process
of its own; checks and views are timed in this one.

    python -m benchmarks large --data FOLDER --size rows=10000000 --size copies=3 --size later=0
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from sqlalchemy import Engine, TableClause, column, func, select, table, update

from benchmarks.growth import (
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
from benchmarks.joined_articles import MOST_EDITS, JoinedArticles
from benchmarks.processes import Measured, measure
from benchmarks.servers import each_database
from benchmarks.timing import median_seconds
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import Settings

_SUPPLEMENT = "另：相关材料已于本周补充提交。"
_CHECKS = 20
_RUNS = 3


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
    """

    rows: int = 1_000_000
    changes: int = 5_000
    copies: int = 0
    later: int = 1
    matching_mb: int = 0


SMALL = Sizes(rows=1_000, changes=50)


def run(
    data: Path | None,
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = ("PostgreSQL",),
) -> None:
    """Print a line for each step in each database."""
    warm_up()
    kind, make_texts = _texts(data, sizes)
    for name, url in each_database(databases):
        print(f"{name}: {sizes.rows:,} {kind}, default preset; memory of db_dedup's processes")
        print(f"{'step':<32} {'seconds':>10} {'CPU s':>9} {'PSS MB':>8} {'anon MB':>8} {'file MB':>8}")
        with tempfile.TemporaryDirectory() as folder, closing(Database(url, create=True)) as database:
            start = perf_counter()
            fill(database, make_texts())
            print(f"{'fill the table':<32} {perf_counter() - start:>10.1f}", flush=True)
            print(f"{'the table on disk':<32} {total_bytes(database, TEXTS) / 1e6:>10,.0f} MB", flush=True)
            _measure(database, Path(folder), url, sizes)


def _texts(data: Path | None, sizes: Sizes) -> tuple[str, Callable[[], Iterator[str]]]:
    """Return (what the texts are, what makes them)."""
    if data is None:
        return "made-up petitions", lambda: made_petitions(sizes.rows)
    if not sizes.copies:
        kind = "articles of law, multiplied with fresh edits"
        return kind, lambda: multiplied_articles(data, sizes.rows)
    kind = f"texts of sentences of articles of law, {sizes.copies} % near-copies with 1 to {MOST_EDITS} edits"
    return kind, lambda: JoinedArticles(data, sizes.copies).texts(sizes.rows)


def _measure(database: Database, folder: Path, url: str, sizes: Sizes) -> None:
    before = file_bytes(database)
    settings = SETTINGS.format(url=json.dumps(url))
    if sizes.matching_mb:
        settings += f"[engine]\nmatching_mb = {sizes.matching_mb}\n"
    (folder / "dedup.toml").write_text(settings, encoding="utf-8")
    _command(folder, "upgrade")
    _tell("first scan", _command(folder, "scan", "texts"))
    print(f"{'tables of db_dedup on disk':<32} {store_bytes(database, before) / 1e6:>10,.0f} MB")
    if not sizes.later:
        return
    # Attached before a scan: the worker would otherwise begin with one.
    _command(folder, "attach", "texts")
    _change(database.engine, 100, 0)
    _tell("scan, 1 % changed", _command(folder, "scan", "texts"))
    step = max(1, sizes.rows // sizes.changes)
    _change(database.engine, step, 1 % step)
    _tell(f"worker, {sizes.rows // step:,} changes", _command(folder, "worker", "texts", "--drain"))
    watched = Settings.from_file(folder / "dedup.toml").watched("texts")
    _measure_reading(database, Deduplicator(database, watched))


def _measure_reading(database: Database, dedup: Deduplicator) -> None:
    """Time checks of stored texts, and the views."""
    with database.engine.connect() as connection:
        texts = connection.execute(select(TEXTS.c.text).where(TEXTS.c.id <= _CHECKS)).scalars().all()
    for value in texts:
        dedup.check({"text": value})
    _tell_seconds(f"check, of {len(texts)}", lambda: [dedup.check({"text": t}) for t in texts], len(texts))
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
            _tell_seconds(title, lambda q=query: connection.execute(q).all())  # type: ignore[misc]


def _command(folder: Path, *arguments: str) -> Measured:
    return measure("db_dedup.cli", *arguments, folder=folder)


def _change(engine: Engine, step: int, remainder: int) -> None:
    """Append a sentence to each row whose id has this remainder."""
    new = TEXTS.c.text.concat(_SUPPLEMENT)
    with engine.begin() as connection:
        connection.execute(update(TEXTS).where(TEXTS.c.id % step == remainder).values(text=new))


def _view(database: Database, name: str) -> TableClause:
    """Return one of the views; only these of its columns are read."""
    schema, prefix = ("dedup", "") if database.engine.dialect.name == "postgresql" else (None, "dedup_")
    columns = {
        "pairs": ("key_a", "key_b"),
        "groups": ("group_id", "size"),
        "members": ("group_id", "row_key"),
    }
    return table(f"{prefix}duplicate_{name}", *map(column, columns[name]), schema=schema)


def _tell(step: str, taken: Measured) -> None:
    memory = f"{taken.proportional:>8.0f} {taken.anonymous:>8.0f} {taken.files:>8.0f}"
    print(f"{step:<32} {taken.wall:>10.1f} {taken.cpu:>9.1f} {memory}", flush=True)


def _tell_seconds(step: str, work: Callable[[], object], parts: int = 1) -> None:
    print(f"{step:<32} {median_seconds(work, _RUNS) / parts:>10.4f}", flush=True)
