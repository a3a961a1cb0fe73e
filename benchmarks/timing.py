"""Wall time, as a median of several runs."""

from collections.abc import Callable
from statistics import median
from time import perf_counter


def median_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median wall time of one call."""
    seconds = []
    for _ in range(runs):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return median(seconds)
