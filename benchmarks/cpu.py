"""CPU time, of this process and of those it has waited for."""

import os
from collections.abc import Callable
from statistics import median
from typing import TypeVar

Result = TypeVar("Result")


def median_cpu_seconds(work: Callable[[], Result], runs: int = 3) -> tuple[Result, float]:
    """What the work gives, and the median CPU time of one call, user and system."""
    seconds = []
    for _ in range(runs):
        start = cpu_seconds()
        result = work()
        seconds.append(cpu_seconds() - start)
    return result, median(seconds)


def cpu_seconds() -> float:
    """CPU seconds used so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
