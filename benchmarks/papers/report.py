"""What the experiments of the papers share: verdicts, times side by side, and scores of all pairs."""

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from time import process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.methods import Compare

CONFIRMED: Final = "confirmed"
NOT_CONFIRMED: Final = "not confirmed"
NOT_COMPARABLE: Final = "cannot be compared"
_PAIRS_A_PIECE: Final = 1 << 18


def print_finding(paper: str, ours: str, is_confirmed: bool | None, reason: str) -> None:
    """Print what a paper found, what this run found, and whether they agree.

    Args:
        paper: the paper's figure or finding.
        ours: that of this run.
        is_confirmed: None where the two cannot be compared.
        reason: in one sentence, why.
    """
    verdict = NOT_COMPARABLE if is_confirmed is None else CONFIRMED if is_confirmed else NOT_CONFIRMED
    print(f"\npaper: {paper}\nours:  {ours}\n       {verdict}: {reason}")


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call, user and system, in this process."""
    start = process_time()
    work()
    return process_time() - start


def side_by_side(works: Mapping[str, Callable[[], object]], runs: int = 3) -> dict[str, float]:
    """Return the median CPU seconds of each; they run alternately, so that other load slows all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            seconds[name].append(cpu_seconds(work))
    return {name: median(times) for name, times in seconds.items()}


def pieces_of_all_pairs(rows: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield every pair of rows once, (left, right) with left < right, in pieces.

    The pairs come in the order of `np.triu_indices`.
    """
    first = 0
    while first < rows - 1:
        size = max(1, _PAIRS_A_PIECE // (rows - first))
        lefts = np.arange(first, min(first + size, rows - 1))
        counts = rows - 1 - lefts
        left = np.repeat(lefts, counts)
        ends = np.cumsum(counts)
        right = np.arange(left.size) - np.repeat(ends - counts, counts) + left + 1
        yield left, right
        first += size


def values_of_all_pairs(compare: Compare, rows: int) -> NDArray[np.float64]:
    """float64[rows * (rows - 1) / 2]: the similarity or distance of every pair."""
    parts = [compare(left, right) for left, right in pieces_of_all_pairs(rows)]
    return np.concatenate([np.empty(0), *parts])


def wanted_among_all(wanted: set[tuple[int, int]], rows: int) -> NDArray[np.bool_]:
    """bool[rows * (rows - 1) / 2]: which of all pairs are wanted."""
    is_wanted = np.zeros(rows * (rows - 1) // 2, np.bool_)
    for left, right in wanted:
        is_wanted[left * (2 * rows - left - 1) // 2 + right - left - 1] = True
    return is_wanted
