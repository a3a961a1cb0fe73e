"""A first scan by Spark beside one by the embedded engine: time, CPU time, memory, and whether both agree.

A standalone master and two workers with one core each run on this machine, and the driver with them. Of Spark
all processes are counted: driver, master, workers, executors and their Pythons; of the embedded engine its
own. PostgreSQL is not counted.

    python -m benchmarks spark_scan --size rows=1000000
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from benchmarks.growth import SETTINGS, fill, made_petitions, multiplied_articles, warm_up
from benchmarks.processes import Measured, measure
from benchmarks.servers import reached_postgresql
from db_dedup.app import Database
from tests.servers import ServerUnavailableError
from tests.servers.spark import OPTIONS, Cluster, jar, start_spark

_PARTS = ("reading", "matching", "writing", "other")

# Sums of hashes: the same for the same rows in any order. Which pairs of an abridged group are stored is not
# part of the answer, so they are left out.
_ANSWER = {
    "pairs": """
        SELECT count(*), sum(hashtextextended(concat_ws('/', key_a, key_b, distance, similarity, kind), 0))
        FROM dedup.duplicate_pairs WHERE key_a NOT IN (
            SELECT m.row_key FROM dedup.duplicate_members AS m
            JOIN dedup.duplicate_groups AS g USING (group_id) WHERE g.is_abridged)""",
    "groups": """
        SELECT count(*), sum(hashtextextended(concat_ws('/', group_id, size, is_loose, is_abridged), 0))
        FROM dedup.duplicate_groups""",
    "rows in groups": """
        SELECT count(*), sum(hashtextextended(concat_ws('/', group_id, row_key), 0))
        FROM dedup.duplicate_members""",
    "fingerprints": """
        SELECT count(fingerprint), sum(hashtextextended(concat_ws('/', row_key, fingerprint, digest), 0))
        FROM dedup.fingerprint""",
}

Answer = dict[str, tuple[int, int]]
"""What is counted -> (how many, sum of hashes)."""


@dataclass(frozen=True)
class Sizes:
    """How many rows, and the megabytes of the heaps of Java.

    Attributes:
        executor_mb: of each of the two executors; their Pythons take more beside it.
        driver_mb: of the driver.
    """

    rows: int = 1_000_000
    executor_mb: int = 2_000
    driver_mb: int = 2_000


SMALL = Sizes(rows=1_000, executor_mb=700, driver_mb=700)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a line for each engine, and whether their answers are the same."""
    kind = "articles of law, multiplied with fresh edits" if data else "made-up petitions"
    try:
        with _both(sizes) as (url, cluster):
            warm_up()
            print(f"first scan of {sizes.rows:,} {kind} in PostgreSQL, default preset, two cores")
            with closing(Database(url, create=True)) as database:
                texts = multiplied_articles(data, sizes.rows) if data else made_petitions(sizes.rows)
                fill(database, texts)
                _compare(url, cluster, sizes)
    except ServerUnavailableError as error:
        print(f"Spark: not measured ({error})")


@contextmanager
def _both(sizes: Sizes) -> Iterator[tuple[str, Cluster]]:
    """Yield the URL of a database that executors reach, and a cluster.

    Raises:
        ServerUnavailableError: there is no PostgreSQL, PySpark, Java or JDBC driver here.
    """
    cluster = start_spark(f"{sizes.executor_mb}m")
    try:
        with reached_postgresql() as url:
            yield url, cluster
    finally:
        cluster.stop()


def _compare(url: str, cluster: Cluster, sizes: Sizes) -> None:
    heads = "".join(f" {part:>9}" for part in _PARTS)
    print(f"{'engine':<10} {'wall s':>8} {'CPU s':>8} {'PSS MB':>8} {'anon MB':>8}   of the seconds:{heads}")
    answers: list[Answer] = []
    for name in ("embedded", "spark"):
        with tempfile.TemporaryDirectory() as folder:
            settings = SETTINGS.format(url=json.dumps(url))
            if name == "spark":
                settings += _engine_settings(cluster, sizes)
            (Path(folder) / "dedup.toml").write_text(settings, encoding="utf-8")
            measure("db_dedup.cli", "upgrade", folder=Path(folder))
            beside = [one.pid for one in (*cluster.processes, *cluster.workers)] if name == "spark" else []
            taken = measure(
                *("db_dedup.cli", "scan", "texts", "--json"),
                output=Path(folder) / "report",
                folder=Path(folder),
                beside=beside,
            )
            _tell(name, taken, json.loads((Path(folder) / "report").read_text(encoding="utf-8")))
            answers.append(_answer(url))
            measure("db_dedup.cli", "uninstall", "--yes", folder=Path(folder))
    for what, (count, _) in answers[0].items():
        other = answers[1][what]
        is_same = "the same" if answers[0][what] == other else f"NOT THE SAME: {other[0]:,} by Spark"
        print(f"{what:<16} {count:>12,}  {is_same}")


def _engine_settings(cluster: Cluster, sizes: Sizes) -> str:
    options = {
        **OPTIONS,
        "spark.executor.memory": f"{sizes.executor_mb}m",
        "spark.driver.memory": f"{sizes.driver_mb}m",
    }
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in options.items()]
    head = f'\n[engine]\nname = "spark"\nmaster = "{cluster.master}"\njars = ["{jar("postgresql")}"]\n'
    return "\n".join([head, "[engine.options]", *lines, ""])


def _answer(url: str) -> Answer:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            rows = {what: connection.execute(text(query)).one() for what, query in _ANSWER.items()}
            return {what: (int(row[0]), int(row[1] or 0)) for what, row in rows.items()}
    finally:
        engine.dispose()


def _tell(name: str, taken: Measured, report: dict[str, Any]) -> None:
    parts = "".join(f" {report['parts'][part]:>9.1f}" for part in _PARTS)
    print(
        f"{name:<10} {taken.wall:>8.1f} {taken.cpu:>8.1f} {taken.proportional:>8.0f} {taken.anonymous:>8.0f}"
        f"   {'':<15}{parts}",
        flush=True,
    )
