"""What reading a large answer takes: the queries of commands and views, and `pairs --expand` as a whole."""

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, table, text

from benchmarks.datasets import ARTICLES, load, read_titles
from benchmarks.lookups import vacuum
from benchmarks.processes import measure
from benchmarks.servers import DATABASES, each_database
from benchmarks.timing import median_seconds
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import watched_table
from db_dedup.schema.views import fixed_view
from db_dedup.store import answers

_WATCHED = {"columns": {"text": {"kind": "text"}}}
_SETTINGS = '[database]\nurl = {url}\n[tables.articles.columns]\ntext = {{ kind = "text" }}\n'
_QUERIES = {
    "view: the 20 largest groups": (
        "SELECT * FROM {duplicate_groups} WHERE table_name = 'articles' ORDER BY size DESC, group_id LIMIT 20"
    ),
    "view: how many groups": "SELECT count(*) FROM {duplicate_groups} WHERE table_name = 'articles'",
    "view: members of a group": (
        "SELECT * FROM {duplicate_members} WHERE table_name = 'articles' AND group_id = '{key}'"
    ),
    "view: group of a row": (
        "SELECT * FROM {duplicate_members} WHERE table_name = 'articles' AND row_key = '{key}'"
    ),
    "view: pairs of a row": (
        "SELECT * FROM {duplicate_pairs} WHERE table_name = 'articles' "
        "AND (key_a = '{key}' OR key_b = '{key}')"
    ),
    "view: pairs of a row, each side by itself": (
        "SELECT * FROM {duplicate_pairs} WHERE table_name = 'articles' AND key_a = '{key}' "
        "UNION ALL SELECT * FROM {duplicate_pairs} WHERE table_name = 'articles' AND key_b = '{key}'"
    ),
    "view of the table: one of its rows": "SELECT * FROM {duplicates_of_articles} WHERE id = {key}",
    "view: how many wait": "SELECT * FROM {queue_lag}",
}


@dataclass(frozen=True)
class Sizes:
    """How many titles are read; 0 for all of them."""

    titles: int = 0


SMALL = Sizes(500)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print milliseconds, medians of five calls, and seconds of the whole command."""
    assert data is not None
    rows = [{"id": i, "text": title} for i, title in enumerate(read_titles(data, sizes.titles or 10**9))]
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            load(database.engine, ARTICLES, rows)
            dedup = Deduplicator(database, watched_table("articles", _WATCHED))
            dedup.upgrade()
            report = dedup.scan()
            vacuum(database)
            print(f"{name}: {len(rows):,} rows, {report.groups:,} groups, {report.pairs:,} pairs")
            for what, work in _works(database).items():
                print(f"  {what:<40} {median_seconds(work) * 1000:>9.1f} ms", flush=True)
            _list_pairs(url)


def _works(database: Database) -> dict[str, Callable[[], object]]:
    def query(sql: str) -> list[object]:
        with database.engine.connect() as connection:
            return list(connection.execute(text(sql)).all())

    def read(what: Callable[[Connection], object]) -> None:
        with database.engine.connect() as connection:
            what(connection)

    tables = database.tables
    views = {base: str(fixed_view(tables.namespace, base)) for base in _VIEWS}
    namespace = tables.namespace
    own = table(namespace.name("duplicates_of_articles"), schema=namespace.schema)
    views["duplicates_of_articles"] = str(own)
    with database.engine.connect() as connection:
        largest = next(iter(answers.read_groups(connection, tables, "articles", 1)))
    return {
        "status": database.status,
        "groups --limit 20": partial(read, lambda c: [*answers.read_groups(c, tables, "articles", 20)]),
        "pairs --limit 100": partial(read, lambda c: [*answers.read_pairs(c, tables, "articles", 100)]),
        **{what: partial(query, sql.format(**views, key=largest.group_id)) for what, sql in _QUERIES.items()},
    }


_VIEWS = ("duplicate_groups", "duplicate_members", "duplicate_pairs", "queue_lag")


def _list_pairs(url: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, target = Path(name), Path(name) / "pairs.csv"
        (folder / "dedup.toml").write_text(_SETTINGS.format(url=json.dumps(url)), encoding="utf-8")
        command = ("pairs", "articles", "--expand", "--format", "csv")
        taken = measure("db_dedup.cli", *command, output=target, folder=folder)
        with target.open("rb") as file:
            count = sum(1 for _ in file) - 1
    print(f"  pairs --expand: {count:,} pairs in {taken.wall:.1f} s, {taken.anonymous:.0f} MB", flush=True)
