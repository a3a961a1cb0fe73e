"""What a dry run says that a scan would cost, beside the scan itself."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.generated_petitions import copy, warm_up, watched_petitions, write_sample
from benchmarks.indexes import total_bytes
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.dialects import open_engine

ROWS = 20_000


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    rows: int = ROWS,
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print seconds and bytes, expected and real."""
    print(f"{rows:,} made-up petitions, default preset: what a dry run expects, and the first scan")
    print(f"{'':<11} {'seconds':>9} {'scan':>9} {'ratio':>6} {'MB':>9} {'scan':>9} {'ratio':>6}")
    with TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
        sample = open_engine(f"sqlite:///{folder}/sample.db", create=True)
        write_sample(sample, rows)
        for name, url in each_database(databases):
            with closing(Database(url, create=True)) as database:
                copy(sample, database.engine)
                compare(name, database)
        sample.dispose()


def filled_bytes(database: Database) -> int:
    """What the tables take that a scan fills; a SQLite file is measured as a whole."""
    tables = database.tables
    filled = [tables.fingerprint, tables.sketch_segment, tables.band, tables.pair]
    if database.engine.dialect.name == "sqlite":
        del filled[1:]
    return sum(total_bytes(database, table) for table in filled)


def compare(name: str, database: Database) -> None:
    """One line: a dry run, then the scan."""
    dedup = watched_petitions(database)
    before = filled_bytes(database)
    costs = dedup.preview().costs
    seconds = dedup.scan().seconds
    size = filled_bytes(database) - before
    print(
        f"{name:<11} {costs.seconds:>9.1f} {seconds:>9.1f} {costs.seconds / seconds:>6.2f} "
        f"{costs.bytes / 1e6:>9.2f} {size / 1e6:>9.2f} {costs.bytes / size:>6.2f}"
    )
