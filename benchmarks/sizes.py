"""What our tables take after a first scan, beside the user's own table."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, text
from sqlalchemy.exc import OperationalError

from benchmarks.datasets import ARTICLES, load, read_articles, read_titles
from benchmarks.indexes import short, total_bytes
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import watched_table

MB = 1e6

_PAGES = (
    "SELECT (page_count - freelist_count) * page_size "
    "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)
_PAGES_OF_TABLE = (
    "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = :name)"
)


@dataclass(frozen=True)
class Sizes:
    """How many rows of each set are read; 0 for all of them."""

    articles: int = 0
    titles: int = 0


SMALL = Sizes(500, 500)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print megabytes, of each of our tables that grows with the rows, its indexes included."""
    assert data is not None
    titles = [{"id": i, "text": title} for i, title in enumerate(read_titles(data, sizes.titles or 10**9))]
    sets = {
        "cn-law-articles": read_articles(data)[: sizes.articles or None],
        "weibo-hot-search": titles,
    }
    print("MB of our tables after a first scan, indexes included, default preset")
    for name, url in each_database(databases):
        for what, rows in sets.items():
            with closing(Database(url, create=True)) as database:
                measure(f"{name:<11} {what:<17} {len(rows):>9,} rows", database, rows)


def measure(label: str, database: Database, rows: list[dict[str, object]]) -> None:
    """Scan a table of these rows; print the sizes, and remove everything."""
    load(database.engine, ARTICLES, rows)
    theirs = table_bytes(database, ARTICLES)
    before = file_bytes(database)
    dedup = Deduplicator(database, watched_table("articles", {"columns": {"text": {"kind": "text"}}}))
    dedup.upgrade()
    dedup.scan()
    tables = database.tables
    ours = [tables.fingerprint, tables.pair, tables.sketch_segment, tables.band]
    taken = {short(table.name): table_bytes(database, table) for table in ours}
    whole = file_bytes(database)
    total = sum(taken.values()) if whole is None or before is None else whole - before
    parts = ", ".join(f"{name} {size / MB:.1f}" for name, size in taken.items())
    print(f"{label}: {total / MB:>6.1f} beside {theirs / MB:.1f} ({parts})")
    database.uninstall()
    with database.engine.begin() as connection:
        ARTICLES.drop(connection)


def file_bytes(database: Database) -> int | None:
    """Bytes of all used pages of a SQLite file; None elsewhere."""
    if database.engine.dialect.name != "sqlite":
        return None
    with database.engine.connect() as connection:
        return int(connection.execute(text(_PAGES)).scalar_one())


def table_bytes(database: Database, table: Table) -> int:
    """Bytes of a table and its indexes; 0 if this SQLite cannot tell."""
    if database.engine.dialect.name != "sqlite":
        return total_bytes(database, table)
    with database.engine.connect() as connection:
        return _sqlite_bytes(connection, table.name)


def _sqlite_bytes(connection: Connection, name: str) -> int:
    try:
        return int(connection.execute(text(_PAGES_OF_TABLE), {"name": name}).scalar_one() or 0)
    except OperationalError:  # compiled without dbstat
        return 0
