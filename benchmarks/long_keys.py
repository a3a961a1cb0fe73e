"""Candidates among up to 1e8 random fingerprints: row by row, by keys longer than a block, and as planned.

Each search runs in a process of its own, so that its peak memory is its own. Random fingerprints are the case
in which only the number of rows makes buckets large.
"""

import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates import blocks

_RADIUS = 3
_NEAR = 1000
"""So many rows are within the radius of another one."""
_NEVER, _ALWAYS = 1 << 40, 0
_WAYS = {"row by row": _NEVER, "longer keys": _ALWAYS, "planner": blocks._SORTING}
"""Way -> the cost of sorting that the planner assumes, which decides how buckets are searched."""
_HOT = 1 << 30
_WARM_UP = 200_000


@dataclass(frozen=True)
class Sizes:
    """The most rows, and the fewest, to measure large tables alone; 1e8 rows take minutes, and 4 GB."""

    most_rows: int = 10_000_000
    least_rows: int = 1_000_000


SMALL = Sizes(most_rows=3_000)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:  # noqa: ARG001 - it needs none
    """Print a line for each number of rows and each way."""
    print(f"random fingerprints, {_NEAR:,} of them near another one; all pairs within {_RADIUS} bits")
    print(f"{'rows':>11} {'way':<12} {'CPU s':>8} {'seconds':>8} {'MB':>6} {'pairs':>6}")
    for rows in row_numbers(sizes.least_rows, sizes.most_rows):
        for way, sorting in _WAYS.items():
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                cpu, seconds, megabytes, pairs = process.submit(search, rows, sorting).result()
            print(
                f"{rows:>11,} {way:<12} {cpu:>8.2f} {seconds:>8.2f} {megabytes:>6.0f} {pairs:>6,}", flush=True
            )


def row_numbers(least: int, most: int) -> list[int]:
    """Return those of 1e6, 3e6, 1e7 and so on that are in the range; the largest number if none is."""
    numbers = [mantissa * 10**power for power in range(6, 10) for mantissa in (1, 3)]
    return [rows for rows in numbers if least <= rows <= most] or [most]


def search(rows: int, sorting: int) -> tuple[float, float, float, int]:
    """Return (CPU seconds, seconds, peak megabytes of the process, pairs)."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << 64, rows, np.uint64)
    near = min(_NEAR, rows // 2)
    values[:near] = values[rows - near :] ^ np.uint64(0b111 << 20)
    labels = np.arange(rows, dtype=np.int32)  # as the matching has them: rows that are joined have one label
    set_limits(sorting)
    count(values[:_WARM_UP], labels[:_WARM_UP])
    return timed(lambda: count(values, labels))


def set_limits(sorting: int) -> None:
    """Have buckets searched in one way; only the planner leaves hot ones to the next block."""
    blocks._SORTING = sorting
    if sorting == _NEVER:
        blocks._HOT_COMPARISONS = _HOT


def count(values: NDArray[np.uint64], labels: NDArray[np.int32]) -> int:
    """Return the number of candidate pairs."""
    return sum(left.size for left, _ in blocks.candidate_pairs(values, _RADIUS, labels))


def timed(work: Callable[[], int]) -> tuple[float, float, float, int]:
    """Run it; return what `search` does."""
    start, cpu = perf_counter(), process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return process_time() - cpu, perf_counter() - start, peak, found
