"""How many cores this process may use: a service manager or a container may allow it only some."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from db_dedup.flow.control_groups import group_folders


def usable_cores() -> int:
    """Return how many processes can run at a time, at least 1.

    A container that is given the time of one core still sees all cores of its machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min([cores, *_quotas()])))


def _quotas() -> Iterator[float]:
    """Yield the cores whose time Linux gives this process and the groups that it belongs to."""
    for group in group_folders("cpu"):
        quota = _quota(group)
        if quota is not None:
            yield quota


def _quota(group: Path) -> float | None:
    """Return the limit of one group in cores; None where it has none."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = (
                (group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # the quota may be the word "max"
        return None
