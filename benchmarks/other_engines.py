"""Which rows share hashes, by engines that divide the work: DuckDB, Dask, Ray, Spark, and one process.

This is the step of a scan that an engine must shuffle for. Each gets a Parquet file of (hash, row) and counts
the pairs of rows that share at least `LEAST` hashes, by its own operators, in a process of its own on this
machine. The segmenting and comparing of texts would be the same functions in all of them.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.processes import measure
from benchmarks.side_by_side import sample_texts
from db_dedup.config import watched_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.records.pages import take_lists

LEAST: Final = 3
_MOST_ROWS: Final = 200
"""A hash of more rows is left out: its pairs would be most of the work, and a scan treats it otherwise."""
_PROCESSES: Final = 2
_PARTS: Final = 16
_ROWS_A_PAGE: Final = 2_000


@dataclass(frozen=True)
class Sizes:
    """How many texts."""

    rows: int = 100_000


SMALL: Final = Sizes(rows=200)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print wall time and memory of each engine, starting included, and the pairs that it found."""
    texts = sample_texts(data, sizes.rows)
    hashes, rows = _entries(texts)
    what = "articles of law" if data else "made-up petitions"
    print(
        f"{hashes.size:,} hashes of {len(texts):,} {what}; pairs of rows that share at least {LEAST}; "
        f"each engine has {_PROCESSES} processes or threads"
    )
    print(f"{'':<14} {'wall s':>8} {'PSS MB':>8} {'pairs':>12}")
    with tempfile.TemporaryDirectory() as folder:
        file, answer = Path(folder) / "entries.parquet", Path(folder) / "answer"
        write_entries(file, hashes, rows)
        for name, engine in ENGINES.items():
            if find_spec(engine.module) is None:
                print(f"NOT MEASURED: {name}: pip install {engine.requirement}")
                continue
            taken = measure(__spec__.name, name, str(file), output=answer)
            pairs = int(answer.read_text().split()[-1])
            print(f"{name:<14} {taken.wall:>8.1f} {taken.proportional:>8,.0f} {pairs:>12,}")


def _entries(texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (hashes, rows) of all sketches, without the hashes of one row and those of very many."""
    watched = watched_table("texts", {"columns": {"text": {"kind": "text"}}})
    fingerprinter = Fingerprinter(watched.recipe, threads=_PROCESSES)
    pages = take_lists(iter(texts), lambda: _ROWS_A_PAGE)
    sketches = [fingerprinter.fingerprint([(text,) for text in page]).sketches for page in pages]
    hashes = np.concatenate([part.values for part in sketches]).view(np.int64)
    rows = np.repeat(np.arange(len(texts)), np.concatenate([part.counts for part in sketches]))
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    is_kept = (counts[which] > 1) & (counts[which] <= _MOST_ROWS)
    return hashes[is_kept], rows[is_kept]


def write_entries(file: Path, hashes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
    """Write the entries in several row groups, so that an engine can read them in parts."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = arrow.table({"hash": hashes, "row": rows})
    parquet.write_table(table, file, row_group_size=max(1, -(-hashes.size // _PARTS)))


def _by_one_process(file: str) -> int:
    """Count with numpy alone: sort by hash, join each run with itself, sort the pairs."""
    table = import_module("pyarrow.parquet").read_table(file)
    pairs = _joined(table["hash"].to_numpy(), table["row"].to_numpy())
    return int(np.count_nonzero(np.unique(pairs, return_counts=True)[1] >= LEAST))


def _joined(hashes: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of rows that share a hash, once for each, as (row << 32 | later row)."""
    order = np.lexsort((rows, hashes))
    hashes, rows = hashes[order], rows[order]
    ends = np.searchsorted(hashes, hashes, "right")
    later = ends - np.arange(hashes.size) - 1
    first = np.repeat(np.arange(hashes.size), later)
    second = first + 1 + np.arange(first.size) - np.repeat(np.cumsum(later) - later, later)
    pairs: NDArray[np.int64] = (rows[first] << 32) | rows[second]
    return pairs


_SQL: Final = (
    "SELECT count(*) FROM (SELECT a.row, b.row FROM {entries} AS a JOIN {entries} AS b "
    "ON a.hash = b.hash AND a.row < b.row GROUP BY a.row, b.row HAVING count(*) >= {least}) AS shared"
)


def _by_duckdb(file: str) -> int:
    connection = import_module("duckdb").connect(config={"threads": _PROCESSES})
    found = connection.execute(_SQL.format(entries=f"'{file}'", least=LEAST)).fetchone()
    return int(found[0])


def _by_spark(file: str) -> int:
    builder = import_module("pyspark.sql").SparkSession.builder.master(f"local[{_PROCESSES}]")
    builder = builder.config("spark.ui.enabled", False).config("spark.driver.memory", "6g")
    builder = builder.config("spark.sql.shuffle.partitions", _PARTS)
    session = builder.getOrCreate()
    try:
        session.read.parquet(file).createOrReplaceTempView("entries")
        return int(session.sql(_SQL.format(entries="entries", least=LEAST)).first()[0])
    finally:
        session.stop()


def _by_dask(file: str) -> int:
    distributed, frames = import_module("distributed"), import_module("dask.dataframe")
    with (
        distributed.LocalCluster(_PROCESSES, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        entries = frames.read_parquet(file, split_row_groups=1)
        joined = entries.merge(entries, on="hash", npartitions=_PARTS)
        joined = joined[joined.row_x < joined.row_y]
        counts = joined.groupby(["row_x", "row_y"]).size(split_out=_PARTS)
        return int((counts >= LEAST).sum().compute())


def _by_ray(file: str) -> int:
    ray, data = import_module("ray"), import_module("ray.data")
    ray.init(num_cpus=_PROCESSES, include_dashboard=False, log_to_driver=False)
    try:
        data.DataContext.get_current().enable_progress_bars = False
        entries = data.read_parquet(file).repartition(_PARTS, keys=["hash"])
        pairs = entries.map_batches(_join_part, batch_size=None).repartition(_PARTS, keys=["pair"])
        return int(pairs.map_batches(_count_part, batch_size=None).sum("pairs") or 0)
    finally:
        ray.shutdown()


def _join_part(part: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {"pair": _joined(part["hash"], part["row"])}


def _count_part(part: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    counts = np.unique(part["pair"], return_counts=True)[1]
    return {"pairs": np.array([np.count_nonzero(counts >= LEAST)])}


class Engine(NamedTuple):
    """The module that it needs, what pip installs for it, and what counts the pairs of a file."""

    module: str
    requirement: str
    count: Callable[[str], int]


ENGINES: Final[Mapping[str, Engine]] = {
    "one process": Engine("pyarrow", "pyarrow", _by_one_process),
    "DuckDB": Engine("duckdb", "duckdb", _by_duckdb),
    "Spark": Engine("pyspark", "pyspark", _by_spark),
    "Dask": Engine("distributed", '"dask[dataframe,distributed]"', _by_dask),
    "Ray": Engine("ray", '"ray[data]"', _by_ray),
}


if __name__ == "__main__":
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns without it
    print(ENGINES[sys.argv[1]].count(sys.argv[2]))
