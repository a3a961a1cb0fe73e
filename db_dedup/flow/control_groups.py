"""The control groups of Linux, by which a service manager or a container limits what a process may use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GROUPS_OF_THIS_PROCESS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def group_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the groups that limit this process, of both versions; some may not exist.

    Args:
        controller: "cpu" or "memory".
    """
    try:
        lines = _GROUPS_OF_THIS_PROCESS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = _GROUPS / controller if controllers else _GROUPS
        folder = top / path.lstrip("/")
        # A container may not see the folder of its own group. Its limits are then in the top folder.
        for group in (folder, *folder.parents):
            yield group
            if group == top:
                break
