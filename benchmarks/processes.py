"""Commands that are measured from outside: wall time, CPU time and memory of all their processes (Linux)."""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

_PAUSE = 0.05
_PAUSES_FOR_EACH_LOOK = 15
_MEGABYTE = 1 << 20
_KILOBYTE = 1 << 10
# Fields of /proc/PID/stat behind the name of the command, which is in brackets.
_USER, _SYSTEM = 11, 12


@dataclass(frozen=True)
class Measured:
    """What a command took.

    Attributes:
        wall: seconds from its start to its exit, imports included.
        cpu: seconds, user and system, of all its processes.
        proportional: peak megabytes of all its processes together, shared pages counted once (PSS).
        anonymous: peak megabytes of them that are no part of a file.
        files: peak megabytes of their temporary files, in memory or not.
    """

    wall: float
    cpu: float
    proportional: float
    anonymous: float
    files: float

    def followed_by(self, other: "Measured") -> "Measured":
        """Return what both commands take, one after the other."""
        return Measured(
            self.wall + other.wall,
            self.cpu + other.cpu,
            max(self.proportional, other.proportional),
            max(self.anonymous, other.anonymous),
            max(self.files, other.files),
        )


def measure(
    module: str,
    *arguments: str,
    output: Path | None = None,
    folder: Path | None = None,
    beside: Sequence[int] = (),
) -> Measured:
    """Run a module of Python in a process of its own, and measure it.

    Args:
        module: its name.
        arguments: of its command line.
        output: the file that gets what it prints; None for nowhere.
        folder: where it runs.
        beside: processes that work for it, such as those of a cluster: what they and their children take
            meanwhile is counted, too.

    Raises:
        RuntimeError: it failed.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    with (output or Path(os.devnull)).open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdout=file,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(os.environ),
        )
        most = [0.0, 0.0, 0.0]
        sampled = _SampledCpu(beside)
        while process.poll() is None:
            looked = perf_counter()
            trees = [_tree_megabytes(pid) for pid in (process.pid, *beside)]
            found = (*(sum(sizes) for sizes in zip(*trees, strict=True)), _temporary_megabytes(process.pid))
            most = [max(pair) for pair in zip(most, found, strict=True)]
            if beside:
                sampled.look((process.pid, *beside))
            # Gigabytes of memory take a while to add up, and meanwhile a core does nothing else.
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(_PAUSE, _PAUSES_FOR_EACH_LOOK * (perf_counter() - looked)))
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{module} {' '.join(arguments)} failed")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if beside:  # which this process does not wait for, nor does the command for a machine of Java
        cpu = sampled.seconds
    return Measured(wall, cpu, *most)


@dataclass
class _SampledCpu:
    """CPU seconds of trees of processes, of which each is looked at now and then until it ends.

    Attributes:
        beside: processes that ran before; what they and their children took by then does not count.
    """

    beside: Sequence[int]
    _last: dict[int, float] = field(default_factory=dict)
    _before: float = 0.0

    def __post_init__(self) -> None:
        self.look(self.beside)
        self._before = sum(self._last.values())

    def look(self, pids: Sequence[int]) -> None:
        """Note what each process has taken so far."""
        for pid in pids:
            try:
                found = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            self._last[pid] = (int(found[_USER]) + int(found[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
            self.look(_children(pid))

    @property
    def seconds(self) -> float:
        """Return what they have taken since the start."""
        return sum(self._last.values()) - self._before


def _children(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, file.read_text(encoding="ascii").split())
    return found


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a module is found from any folder."""
    return {**own, "PYTHONPATH": str(Path(__file__).parent.parent)}


def _tree_megabytes(pid: int) -> tuple[float, float]:
    """Return (PSS, anonymous memory) of a process and its children, now."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    sizes = {line.split()[0]: float(line.split()[1]) * _KILOBYTE / _MEGABYTE for line in lines[1:]}
    parts: Sequence[tuple[float, float]] = [_tree_megabytes(child) for child in _children(pid)]
    return (
        sizes.get("Pss:", 0.0) + sum(part[0] for part in parts),
        sizes.get("Anonymous:", 0.0) + sum(part[1] for part in parts),
    )


def _temporary_megabytes(pid: int) -> float:
    """Return what the temporary files of one process take, now: those without a name, open or mapped."""
    sizes: dict[int, int] = {}
    try:
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
            if "/#" in line and line.endswith("(deleted)"):
                bounds, _, offset, _, inode, _ = line.split(maxsplit=5)
                first, last = (int(bound, 16) for bound in bounds.split("-"))
                sizes[int(inode)] = max(sizes.get(int(inode), 0), int(offset, 16) + last - first)
        for file in Path(f"/proc/{pid}/fd").iterdir():
            if "/#" in str(file.readlink()):
                found = file.stat()
                sizes[found.st_ino] = max(sizes.get(found.st_ino, 0), found.st_size)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0.0
    return sum(sizes.values()) / _MEGABYTE
