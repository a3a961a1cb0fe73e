"""Three ways to join the rows of a long run: every two, those that share enough hashes or a rare feature.

The rows are generated petitions; with a folder of data, texts that join sentences of articles of law.

    python -m benchmarks long_runs --size rows=300000
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.growth import made_petitions
from benchmarks.joined_articles import JoinedArticles
from db_dedup.config import watched_table
from db_dedup.flow.candidates.sketches import entries_of_part, runs_of_equal
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching._bitmaps import Bitmaps, make_bitmaps
from db_dedup.flow.matching._join_features import count_visits, index_rarest, join_indexed, sort_run
from db_dedup.flow.matching._join_runs import join_all, join_counted
from db_dedup.flow.matching._join_sharing import SHORTEST_COUNTED
from db_dedup.flow.matching._shared_hashes import RunHash, count_odd
from db_dedup.flow.matching.budget import Budget
from db_dedup.flow.pipeline import Fingerprinter

_WATCHED = watched_table("texts", {"columns": {"text": 1}, "frames": False})
_NEAR_COPIES = 3
_RUNS = 5


@dataclass(frozen=True)
class Sizes:
    """How many texts there are."""

    rows: int = 100_000


SMALL = Sizes(rows=1_000)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print what each way takes for the longest runs, for each of their rows."""
    if data is None:
        name, texts = "generated petitions", made_petitions(sizes.rows)
    else:
        name, texts = "joined sentences of law", JoinedArticles(data, _NEAR_COPIES).texts(sizes.rows)
    done = Fingerprinter(_WATCHED.recipe).fingerprint([(text,) for text in texts])
    chosen = np.flatnonzero(done.has_fingerprint).astype(np.int32)
    table = done.compared([None] * sizes.rows)
    rows, rule = table.arrays(chosen, table.rejected), Rule(_WATCHED.setting).numbers
    bitmaps = make_bitmaps(rows, rule, Budget().bitmap_bytes)
    salts = np.zeros(chosen.size, np.uint64)
    entries = entries_of_part(done.sketches, rows.sketch_places, salts, 0, 1)
    run_rows, starts, hashes = runs_of_equal(*entries)
    is_odd = (hashes & np.uint64(1)).astype(np.bool_)
    longest = np.argsort(np.where(is_odd, -np.diff(starts), 0), kind="stable")[:_RUNS]
    frequencies, _ = count_odd(rows)

    def compare(some: NDArray[np.int32], shared: np.uint64) -> tuple[int, float, float, float]:
        return _compare(some, RunHash(shared, frequencies, SHORTEST_COUNTED), bitmaps, rows, rule)

    compare(run_rows[:2], hashes[0])  # compiles
    print(f"the longest runs of {sizes.rows:,} {name}; microseconds for each of their rows")
    print(f"{'rows':>8} {'visits a comparison':>20} {'every two':>10} {'by hashes':>10} {'by features':>12}")
    for one in longest.tolist():
        some = run_rows[starts[one] : starts[one + 1]]
        visits, *seconds = compare(some, hashes[one])
        every_two, by_hashes, by_features = (1e6 / some.size * each for each in seconds)
        comparisons = max(1, some.size * (some.size - 1) // 2)
        print(
            f"{some.size:>8,} {visits / comparisons:>20.2f} {every_two:>10.1f} {by_hashes:>10.1f} "
            f"{by_features:>12.1f}",
            flush=True,
        )


def _compare(
    some: NDArray[np.int32],
    run_hash: RunHash,
    bitmaps: Bitmaps,
    rows: Any,
    rule: Any,
) -> tuple[int, float, float, float]:
    """Return (visits of the index of features, seconds of every two rows, by hashes, by rare features)."""
    run = np.array([0, some.size]), np.array([run_hash.value]), *run_hash[1:]
    most = np.full(1, np.iinfo(np.int64).max)  # never given up

    def of_all() -> tuple[Bitmaps, NDArray[np.int32], Any, Any]:
        return bitmaps, np.arange(bitmaps.sizes.size, dtype=np.int32), rows, rule

    every_two = _seconds(lambda: join_all(some, run_hash, *of_all()))
    by_hashes = _seconds(lambda: join_counted(some, *run, np.zeros(1, np.int64), most, *of_all()))
    visits: list[int] = []

    def by_features() -> None:
        parents = np.arange(bitmaps.sizes.size, dtype=np.int32)
        found = sort_run(some, parents, rows, rule)
        index = index_rarest(0, some.size, found, bitmaps, rows)
        visits.append(count_visits(found, index))
        join_indexed(found, index, run_hash, bitmaps, parents, rows, rule)

    seconds = _seconds(by_features)
    return visits[0], every_two, by_hashes, seconds


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
