"""Full scans of up to a hundred thousand made-up petitions, and rescans of the same rows; draws a plot.

`growth` measures more rows, by the command line. Here the steps of a scan are timed.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from sqlalchemy import Engine, select

from benchmarks.plot import log_log_svg
from benchmarks.servers import each_database
from db_dedup import Deduplicator, Text
from db_dedup.app import Database
from db_dedup.cli.demo import petitions
from db_dedup.dialects import open_engine
from db_dedup.progress import NullProgress
from db_dedup.records import ScanReport
from db_dedup.sample import Petition, generate_petitions

SIZES = (1_000, 10_000, 100_000)
PRESETS = ("balanced", "strict")
DATABASES = ("SQLite", "PostgreSQL")
PLOT = Path(__file__).parent.parent / "docs" / "explanation" / "scan-time.svg"

_MOST_AT_ONCE = 100_000
_NAMES = tuple(petitions.columns.keys())
_PHASES = {
    "fingerprints": ("fingerprints",),
    "texts again": ("texts of candidates",),
    "matching": ("candidates", "matching", "pairs"),
    "writing": ("writing the answer",),
}


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sequence[int] = SIZES,
    databases: Sequence[str] = DATABASES,
    plot: Path = PLOT,
) -> None:
    """Print the seconds of each scan and its phases, and draw them."""
    print(
        "made-up petitions, one in five a repeat of another; title and content as text; "
        "one scan each, in a process that has scanned before"
    )
    columns = "".join(f" {phase:>12}" for phase in _PHASES)
    print(f"{'rows':>9} {'database':<11} {'':<16} {'seconds':>8} {'us a row':>9}{columns} {'pairs':>9}")
    seconds: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        warm_up(f"sqlite:///{folder}/warm_up.db")
        for rows in sizes:
            sample = open_engine(f"sqlite:///{folder}/{rows}.db", create=True)
            write_sample(sample, rows)
            for preset in PRESETS:
                for name, url in each_database(databases):
                    with closing(Database(url, create=True)) as database:
                        copy(sample, database.engine)
                        scanned = scan_twice(name, database, preset)
                    seconds.setdefault(f"{name}, {preset}", {})[rows] = scanned
            sample.dispose()
    plot.write_text(
        log_log_svg(seconds, "Seconds of a full scan by rows", "rows", "seconds"), encoding="utf-8"
    )
    print(f"drawn in {plot}")


def scan_twice(name: str, database: Database, preset: str) -> float:
    """Scan and scan again; the seconds of the first scan."""
    timer = PhaseTimer()
    dedup = watch(database, timer, preset)
    reports = []
    for kind in ("scan", "rescan"):
        timer.seconds.clear()
        reports.append(dedup.scan())
        tell(name, f"{preset}, {kind}", reports[-1], timer)
    return reports[0].seconds


class PhaseTimer(NullProgress):
    """The seconds of each step of a scan."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._step, self._start = "", 0.0

    def start(self, step: str, total: int | None) -> None:  # noqa: ARG002 - part of the protocol
        """A step begins."""
        self._step, self._start = step, perf_counter()

    def finish(self) -> None:
        """The current step is over."""
        passed = perf_counter() - self._start
        self.seconds[self._step] = self.seconds.get(self._step, 0.0) + passed


def watch(database: Database, progress: NullProgress, preset: str = "balanced") -> Deduplicator:
    """Our tables made, nothing scanned yet."""
    columns = {"title": Text(), "content": Text()}
    dedup = Deduplicator(database, "petitions", columns, preset=preset, order="created_at", progress=progress)
    dedup.upgrade()
    return dedup


def warm_up(url: str) -> None:
    """Load dictionaries and compiled kernels."""
    with closing(Database(url, create=True)) as database:
        write_sample(database.engine, 200)
        dedup = watch(database, NullProgress())
        dedup.scan()
        dedup.scan()  # a rescan has kernels of its own


def write_sample(engine: Engine, rows: int) -> None:
    """Make the petitions; many of them in parts, each of another seed, that know nothing of each other."""
    sizes = [min(_MOST_AT_ONCE, rows - first) for first in range(0, rows, _MOST_AT_ONCE)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        each = processes.map if len(sizes) > 1 else map
        parts: Iterator[list[Petition]] = each(make_part, range(len(sizes)), sizes)
        write(engine, (_values(petition) for found in parts for petition in found))


def make_part(number: int, size: int) -> list[Petition]:
    """Petitions whose ids follow those of the part before."""
    found = generate_petitions(size, seed=number + 1).petitions
    return [replace(petition, id=petition.id + number * _MOST_AT_ONCE) for petition in found]


def copy(sample: Engine, target: Engine) -> None:
    """The sample's rows into another database."""
    with sample.connect() as connection:
        rows = connection.execution_options(yield_per=10_000).execute(select(petitions))
        write(target, map(tuple, rows))


def write(engine: Engine, rows: Iterator[Sequence[object]]) -> None:
    """Make the table of petitions and fill it."""
    dialect = Database(engine).dialect
    with dialect.write_transaction(engine) as connection:
        petitions.create(connection)
        dialect.bulk_insert(connection, petitions, _NAMES, rows)


def tell(name: str, kind: str, report: ScanReport, timer: PhaseTimer) -> None:
    """One line of the table."""
    phases = [sum(timer.seconds.get(step, 0.0) for step in steps) for steps in _PHASES.values()]
    columns = "".join(f" {phase:>12.2f}" for phase in phases)
    print(
        f"{report.rows:>9,} {name:<11} {kind:<16} {report.seconds:>8.2f} "
        f"{report.seconds / report.rows * 1e6:>9.0f}{columns} {report.pairs:>9,}"
    )


def _values(petition: Petition) -> tuple[object, ...]:
    return tuple(getattr(petition, name) for name in _NAMES)
