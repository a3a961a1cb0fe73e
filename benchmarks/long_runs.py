"""Two ways to join the rows of a long run: every two of them, or those that share a feature rare in the run.

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
from db_dedup.flow.matching._join_features import count_visits, index_rarest, join_indexed, sort_run
from db_dedup.flow.matching._join_runs import join_all
from db_dedup.flow.matching._outlines import Outlines, count_outlines, outline_rows
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
    """Print what both ways take for the longest runs, for each of their rows."""
    if data is None:
        name, texts = "generated petitions", made_petitions(sizes.rows)
    else:
        name, texts = "joined sentences of law", JoinedArticles(data, _NEAR_COPIES).texts(sizes.rows)
    done = Fingerprinter(_WATCHED.recipe).fingerprint([(text,) for text in texts])
    chosen = np.flatnonzero(done.has_fingerprint).astype(np.int32)
    table = done.compared([None] * sizes.rows)
    rows, rule = table.arrays(chosen, table.rejected), Rule(_WATCHED.setting).numbers
    counts, firsts = count_outlines(rows, rule)
    outlines = outline_rows(counts, firsts, np.zeros(int(firsts[-1]), np.uint64), rows, rule)
    salts = np.zeros(chosen.size, np.uint64)
    run_rows, starts = runs_of_equal(*entries_of_part(done.sketches, rows.sketch_places, salts, 0, 1))
    longest = np.argsort(-np.diff(starts), kind="stable")[:_RUNS]
    _compare(run_rows[:2], outlines, rows, rule)  # compiles
    print(f"the longest runs of {sizes.rows:,} {name}; microseconds for each of their rows")
    print(f"{'rows':>8} {'visits a comparison':>20} {'every two':>10} {'by rare features':>17}")
    for one in longest.tolist():
        some = run_rows[starts[one] : starts[one + 1]]
        visits, every_two, by_features = _compare(some, outlines, rows, rule)
        comparisons = max(1, some.size * (some.size - 1) // 2)
        micro = 1e6 / some.size
        print(
            f"{some.size:>8,} {visits / comparisons:>20.2f} {every_two * micro:>10.1f} "
            f"{by_features * micro:>17.1f}",
            flush=True,
        )


def _compare(some: NDArray[np.int32], outlines: Outlines, rows: Any, rule: Any) -> tuple[int, float, float]:
    """Return (visits of the index, seconds of comparing every two rows, seconds by rare features)."""
    count = outlines.sizes.size
    every_two = _seconds(lambda: join_all(some, outlines, np.arange(count, dtype=np.int32), rows, rule))
    visits: list[int] = []

    def by_features() -> None:
        parents = np.arange(count, dtype=np.int32)
        found = sort_run(some, parents, rows, rule)
        index = index_rarest(0, some.size, found, outlines, rows)
        visits.append(count_visits(found, index))
        join_indexed(found, index, outlines, parents, rows, rule)

    seconds = _seconds(by_features)
    return visits[0], every_two, seconds


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
