"""Changed rows a second that the worker handles among a million fingerprints, rule by rule."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, Final

from sqlalchemy import Connection, Engine, MetaData, delete, insert, select, update

from benchmarks.scan_times import warm_up, write_sample
from benchmarks.servers import DATABASES, each_database
from db_dedup import Deduplicator, Text, Value
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.jobs.worker.batch_size import BATCH_CHANGES
from db_dedup.jobs.worker.change_worker import ChangeWorker
from db_dedup.jobs.worker.table_worker import TableWorker
from db_dedup.jobs.worker.worker_table import Batch
from db_dedup.records import ScanReport

_TEXTS: Final = {"title": Text(), "content": Text()}
# The content alone decides each bit: pairs are then rows of one content and several titles.
_VALUES: Final = {"title": Value(weight=1), "content": Value(weight=3)}
_SIMILAR: Final = {"similarity": "char_overlap", "threshold": 0.57}
RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "radius 3, values": {"columns": _VALUES, "preset": "strict", "min_features": 2},
    "radius 3, texts": {"columns": _TEXTS, "preset": "strict"},
    "radius 3, texts, similarity": {"columns": _TEXTS, "preset": "strict", **_SIMILAR},
    "radius 11, texts, similarity": {"columns": _TEXTS, "preset": "strict", **_SIMILAR, "radius": 11},
}
DEFAULT: Final[Mapping[str, Mapping[str, Any]]] = {"default preset": {"columns": _TEXTS}}
KINDS: Final = ("inserts", "updates", "deletes")
SUPPLEMENT: Final = "另：相关材料已于本周补充提交。"

arrivals = petitions.to_metadata(MetaData(), name="arrivals")


@dataclass(frozen=True)
class Sizes:
    """How much is stored and changed.

    Attributes:
        rows: made up; all are stored but those that are inserted later.
        rows_by_default: likewise under the default preset, whose scan takes longer.
        changes: of each kind for each rule.
    """

    rows: int = 1_100_000
    rows_by_default: int = 110_000
    changes: int = 5_000


SMALL: Final = Sizes(3_000, 3_000, 150)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print the rates of each rule in each database."""
    print(
        f"made-up petitions, one in five a repeat of another; {sizes.changes:,} changes of each kind wait,\n"
        f"then one worker drains the queue, up to {BATCH_CHANGES:,} in a transaction\n"
        "values: title and content are one feature each, nothing is segmented; texts: segmented;\n"
        "similarity: share of 3-grams, candidates' texts are read again; default: sketches as well\n"
        "first: the batch that reads all fingerprints into memory; only the last column counts it in"
    )
    titles = "".join(f" {kind:>9}" for kind in (*KINDS, "all", "overall"))
    print(f"{'rows a second':<40} {'stored':>9} {'first s':>8}{titles} {'pairs':>9}")
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
        for rows, rules in ((sizes.rows, RULES), (sizes.rows_by_default, DEFAULT)):
            with closing(Database(f"sqlite:///{folder}/{len(rules)}.db", create=True)) as sample:
                write_sample(sample.engine, rows)
                for name, url in each_database(databases):
                    with closing(Database(url, create=True)) as database:
                        measure(name, database, sample.engine, rules, rows // sizes.changes)


def measure(
    name: str, database: Database, sample: Engine, rules: Mapping[str, Mapping[str, Any]], parts: int
) -> None:
    """One line for each rule, the database the same all along; one of the parts is changed at a time."""
    fill(database, sample, range(0, 3 * len(rules), 3), parts)
    for turn, (rule, settings) in enumerate(rules.items()):
        dedup = Deduplicator(database, "petitions", order="created_at", **settings)
        if turn == 0:
            dedup.upgrade()
            dedup.attach()
        report = dedup.scan()
        worker = dedup.worker()
        worker._choice.may_prefer_scan = False  # batches are to be timed
        drains = []
        for kind, part in zip(KINDS, range(3 * turn, 3 * turn + 3), strict=True):
            with database.engine.begin() as connection:
                change(connection, kind, parts, part)
            drains.append(drain(worker))
        tell(name, rule, report, drains)


def fill(database: Database, sample: Engine, later: Sequence[int], parts: int) -> None:
    """The petitions into the user's table, the parts that are inserted later into one beside it."""
    names = petitions.columns.keys()
    for table, comes_later in ((petitions, False), (arrivals, True)):
        is_later = (petitions.c.id % parts).in_(later)
        query = select(petitions).where(is_later if comes_later else ~is_later)
        with sample.connect() as rows, database.dialect.write_transaction(database.engine) as connection:
            table.create(connection)
            found = rows.execution_options(yield_per=10_000).execute(query)
            database.dialect.bulk_insert(connection, table, names, map(tuple, found))
    database.dialect.refresh_statistics(database.engine, petitions)


def change(connection: Connection, kind: str, parts: int, part: int) -> None:
    """Change the rows of one part of the user's table as an application would: our triggers see it."""
    mine = petitions.c.id % parts == part
    if kind == "inserts":
        new = select(arrivals).where(arrivals.c.id % parts == part)
        connection.execute(insert(petitions).from_select(arrivals.columns.keys(), new))
    elif kind == "updates":
        connection.execute(update(petitions).where(mine).values(content=petitions.c.content + SUPPLEMENT))
    else:
        connection.execute(delete(petitions).where(mine))


@dataclass(frozen=True)
class Drain:
    """The changes of each batch, and its seconds with the look at the queue before it."""

    changes: Sequence[int]
    seconds: Sequence[float]


def drain(worker: TableWorker) -> Drain:
    """Let the worker empty its queue."""
    batches: list[int] = []
    marks = [perf_counter()]

    def note(batch: Batch) -> None:
        batches.append(batch.changes)
        marks.append(perf_counter())

    ChangeWorker([worker], on_batch=note).run(Event(), drain=True)
    return Drain(batches, [end - start for start, end in pairwise(marks)])


def tell(name: str, rule: str, report: ScanReport, drains: Sequence[Drain]) -> None:
    """One line of the table."""
    first, *others = drains
    first_seconds, *seconds = first.seconds
    steady = [Drain(first.changes[1:], seconds), *others]
    rates = [rate([part]) for part in steady] + [rate(steady), rate(drains)]
    columns = "".join(f" {value:>9,.0f}" for value in rates)
    print(
        f"{name:<11} {rule:<28} {report.rows:>9,} {first_seconds:>8.2f}{columns} {report.pairs:>9,}",
        flush=True,
    )


def rate(drains: Sequence[Drain]) -> float:
    """Changed rows a second; not a number where the first batch was all there was."""
    seconds = sum(sum(part.seconds) for part in drains)
    return sum(sum(part.changes) for part in drains) / seconds if seconds else nan
