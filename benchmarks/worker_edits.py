"""Edited rows a second that a worker handles at the default preset, and how long others wait meanwhile."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import perf_counter
from typing import Final

import numpy as np
from sqlalchemy import Column, Engine, Integer, MetaData, Table, bindparam, insert, select, update

from benchmarks.cpu import cpu_seconds
from benchmarks.generated_petitions import copy, warm_up, watched_petitions, write_sample
from benchmarks.materials import MOST_EDITS, edited
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.worker_table import Batch

_INSERTS_A_SECOND: Final = 10

# Not the watched table: its rows would join the queue, which would never be empty.
_visits = Table("visits", MetaData(), Column("id", Integer, primary_key=True), Column("page", Integer))


@dataclass(frozen=True)
class Sizes:
    """How much is stored, how many rows are edited at a time, and how often.

    Attributes:
        rows: made up; all are stored.
        changes: rows that are edited, then handled by one worker.
        rounds: how often; the first one finds nothing in memory.
    """

    rows: int = 20_000
    changes: int = 1_000
    rounds: int = 3


SMALL: Final = Sizes(600, 60, 2)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print a line for each round in each database."""
    print(
        f"{sizes.rows:,} made-up petitions, default preset; {sizes.changes:,} of them get one to five "
        "characters edited, then one worker drains the queue\n"
        f"scans: of these rounds, those that a scan has handled; waits: of {_INSERTS_A_SECOND} inserts a "
        "second meanwhile"
    )
    print(
        f"{'':<11} {'round':>5} {'rows/s':>8} {'CPU ms/row':>11} {'batches':>8} {'scans':>6} "
        f"{'scan s':>7} {'wait p50 ms':>12} {'wait p99 ms':>12}"
    )
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
        with closing(Database(f"sqlite:///{folder}/sample.db", create=True)) as sample:
            write_sample(sample.engine, sizes.rows)
            for name, url in each_database(databases):
                with closing(Database(url, create=True)) as database:
                    measure(name, database, sample.engine, sizes)


def measure(name: str, database: Database, sample: Engine, sizes: Sizes) -> None:
    """One line for each round."""
    copy(sample, database.engine)
    _visits.create(database.engine)
    dedup = watched_petitions(database)
    dedup.attach()
    start = perf_counter()
    dedup.scan()
    scanned = perf_counter() - start
    worker = dedup.worker()
    for number in range(sizes.rounds):
        edit(database, sizes.changes, Random(number))
        batches: list[Batch] = []
        with inserting(database) as waits:
            start, cpu_start = perf_counter(), cpu_seconds()
            ChangeWorker([worker], on_batch=batches.append).run(Event(), drain=True)
            seconds, cpu = perf_counter() - start, cpu_seconds() - cpu_start
        scans = sum(batch.is_scan for batch in batches)
        p50, p99 = np.percentile(np.array(waits) * 1e3, [50, 99]) if waits else (np.nan, np.nan)
        print(
            f"{name:<11} {number + 1:>5} {sizes.changes / seconds:>8,.0f} {cpu / sizes.changes * 1e3:>11.2f} "
            f"{len(batches):>8} {scans:>6} {scanned:>7.1f} {p50:>12.1f} {p99:>12.1f}",
            flush=True,
        )


@contextmanager
def inserting(database: Database) -> Iterator[list[float]]:
    """Insert rows into a table beside at a steady pace until the end; yield the seconds of each."""
    waits: list[float] = []
    is_over = Event()

    def insert_rows() -> None:
        with database.engine.connect() as connection:
            while not is_over.wait(1 / _INSERTS_A_SECOND):
                start = perf_counter()
                with connection.begin():
                    connection.execute(insert(_visits), {"page": len(waits)})
                waits.append(perf_counter() - start)

    application = Thread(target=insert_rows)
    application.start()
    try:
        yield waits
    finally:
        is_over.set()
        application.join()


def edit(database: Database, count: int, chance: Random) -> None:
    """Edit one to five characters of so many rows."""
    query = select(petitions.c.id, petitions.c.content).order_by(petitions.c.id)
    with database.engine.connect() as connection:
        rows = [(row_id, text) for row_id, text in connection.execute(query) if text]
    chosen = chance.sample(rows, min(count, len(rows)))
    characters = sorted({character for _, text in chosen for character in text})
    statement = update(petitions).where(petitions.c.id == bindparam("of")).values(content=bindparam("text"))
    values = [
        {"of": row_id, "text": edited(text, 1 + i % MOST_EDITS, characters, chance)}
        for i, (row_id, text) in enumerate(chosen)
    ]
    with database.dialect.write_transaction(database.engine) as connection:
        connection.execute(statement, values)
