"""What our triggers add to the user's own writes: two tables alike, one of them attached, by turns."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from sqlalchemy import Connection, Engine, MetaData, Table, delete, insert, select, text, update

from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.sample import generate_petitions

ATTACHED: Final = petitions.to_metadata(MetaData(), name="attached")
PLAIN: Final = petitions.to_metadata(MetaData(), name="plain")
CLIENTS: Final = 8

_CLEAR: Final = {"sqlite": "DELETE FROM {0}", "postgresql": "TRUNCATE {0}", "mysql": "TRUNCATE {0}"}
# What autovacuum and the like would do some time during the rounds, and hit one of the two tables alone.
_TIDY: Final = {"postgresql": "VACUUM (ANALYZE) {0}", "mysql": "ANALYZE TABLE {0}", "sqlite": "ANALYZE {0}"}


@dataclass(frozen=True)
class Sizes:
    """How much is written.

    Attributes:
        rows: by each bulk statement.
        one_by_one: by statements of a row each, all in one transaction.
        commits: by transactions of a row each.
        rounds: medians are of so many; in each the two tables take turns.
        seconds: of each round of committing clients.
    """

    rows: int = 100_000
    one_by_one: int = 5_000
    commits: int = 1_000
    rounds: int = 5
    seconds: int = 10


SMALL: Final = Sizes(1_000, 100, 20, 2, 1)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print microseconds a row without and with triggers for each kind of write in each database."""
    print(
        f"made-up petitions, title and content watched; {sizes.rows:,} rows a bulk statement, "
        f"{sizes.one_by_one:,} statements a transaction, {sizes.commits:,} transactions; medians of "
        f"{sizes.rounds} rounds, in each of which the two tables take turns"
    )
    titles = ("plain us", "attached us", "added us", "x plain")
    print("{:<11} {:<36} {:>9} {:>12} {:>9} {:>8}".format("a row", "", *titles))
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database:
            prepare(database, sizes.rows)
            for what, costs in measure(database, sizes).items():
                plain, attached = (median(seconds) * 1e6 for seconds in zip(*costs, strict=True))
                added = median(b - a for a, b in costs) * 1e6
                ratio = median(b / a for a, b in costs)
                print(f"{name:<11} {what:<36} {plain:>9.2f} {attached:>12.2f} {added:>9.2f} {ratio:>8.2f}")
            if database.engine.dialect.name == "postgresql":
                report_clients(database, sizes)


def prepare(database: Database, rows: int) -> None:
    """A table of rows to copy from, and the two that are written to."""
    names = petitions.columns.keys()
    sample = generate_petitions(min(rows, 2_000)).petitions
    with database.dialect.write_transaction(database.engine) as connection:
        for table in (petitions, ATTACHED, PLAIN):
            table.create(connection)
        database.dialect.bulk_insert(
            connection,
            petitions,
            names,
            ((i + 1, *(getattr(sample[i % len(sample)], name) for name in names[1:])) for i in range(rows)),
        )
    dedup = Deduplicator(database, ATTACHED.name, {"title": Text(), "content": Text()})
    dedup.upgrade()
    dedup.attach()
