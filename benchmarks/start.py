"""How long a start takes: help, import, the first use after installing, and a check from the shell."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.timing import median_seconds

_RECORD = json.dumps(
    {"title": "路灯坏了", "content": "小区门口的路灯坏了三个月，晚上出行很不安全。", "region": ""}
)


@dataclass(frozen=True)
class Sizes:
    """Rows of the demo, how often each start is repeated, and whether kernels are compiled (0 or 1), once."""

    rows: int = 5_000
    runs: int = 5
    cold: int = 1


SMALL = Sizes(rows=200, runs=1, cold=0)


def run(data: Path | None, sizes: Sizes | None = None) -> None:  # noqa: ARG001 - it needs none
    """Print for each start the median wall time of the process and its mean processor time, in seconds."""
    sizes = sizes or Sizes()
    with TemporaryDirectory() as folder:
        here = Path(folder)
        demo = ["db-dedup", "demo", "--rows", str(sizes.rows)]
        kernels = {"NUMBA_CACHE_DIR": str(here / "kernels")} if sizes.cold else {}

        def tell(name: str, command: list[str], record: str = "", runs: int = sizes.runs) -> None:
            before = _processor_seconds()
            seconds = median_seconds(lambda: _run(command, here, record, kernels), runs)
            mean = (_processor_seconds() - before) / runs
            print(f"{name:<40} {seconds:>6.2f} s by the clock {mean:>6.2f} s of the processor", flush=True)

        tell("db-dedup --help", ["db-dedup", "--help"])
        tell("import db_dedup", [sys.executable, "-c", "import db_dedup"])
        if sizes.cold:
            tell(f"demo, {sizes.rows:,} rows, nothing compiled yet", demo, runs=1)
        tell(f"demo, {sizes.rows:,} rows, compiled", demo, runs=1)
        check = ["db-dedup", "check", "petitions", "--url", f"sqlite:///{here}/db-dedup-demo/petitions.db"]
        tell("db-dedup check", check, _RECORD)


def _run(command: list[str], folder: Path, record: str, kernels: Mapping[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DB_DEDUP_")}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    root = str(Path(__file__).parent.parent)
    environment |= {"PATH": programs, "PYTHONPATH": root, **kernels}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode on the disk
    subprocess.run(
        command, cwd=folder, env=environment, input=record.encode(), check=True, capture_output=True
    )


def _processor_seconds() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
