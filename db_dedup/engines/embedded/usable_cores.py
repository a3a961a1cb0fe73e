"""How many cores this process may use: a service manager or a container may allow it only some."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GROUPS_OF_THIS_PROCESS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return how many processes can run at a time, at least 1.

    A container that is given the time of one core still sees all cores of its machine.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min([cores, *_quotas()])))


def _quotas() -> Iterator[float]:
    """Yield the cores whose time Linux gives this process and the groups that it belongs to."""
    try:
        lines = _GROUPS_OF_THIS_PROCESS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = _GROUPS / "cpu" if controllers else _GROUPS
        folder = top / path.lstrip("/")
        # A container may not see the folder that it is named by; its own limits are at the top then.
        for group in (folder, *folder.parents):
            quota = _quota(group)
            if quota is not None:
                yield quota
            if group == top:
                break


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
