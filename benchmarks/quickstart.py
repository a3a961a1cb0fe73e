"""Seconds by the clock of each command of the quickstart, from its start to its exit."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database
from db_dedup.cli.demo import fill
from db_dedup.sample import generate_petitions
from tests.shell import run_in_shell

ROWS = 5_000
PAGE = Path(__file__).parent.parent / "docs" / "quickstart.md"
_STEP = re.compile(r"^\| ([^|]+) \| `([^`]+)` \|", re.MULTILINE)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    rows: int = ROWS,
    databases: Sequence[str] = DATABASES,
) -> None:
    """Print the seconds of each step, and the minute at which it has ended."""
    print(f"{rows:,} made-up petitions; seconds of each command, and minutes since the first")
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    with TemporaryDirectory() as folder:
        run_in_shell([f"db-dedup demo --rows {rows}"], Path(folder))
        tell("a file", seconds_of(sections[1], Path(folder) / "db-dedup-demo"))
    for name, url in each_database(databases):
        with closing(Database(url, create=True)) as database, database.engine.begin() as connection:
            fill(connection, generate_petitions(rows))
        with TemporaryDirectory() as folder:
            tell(name, seconds_of(sections[2], Path(folder), DB_DEDUP_URL=url))


def seconds_of(section: str, folder: Path, **variables: str) -> Iterator[tuple[str, float]]:
    """Run the steps of a section; give each with its seconds."""
    for step, command in _STEP.findall(section):
        if command.startswith("export "):
            continue
        start = perf_counter()
        run_in_shell([command], folder, None, **variables)
        yield step, perf_counter() - start


def tell(name: str, steps: Iterator[tuple[str, float]]) -> None:
    """A line for each step."""
    passed = 0.0
    for step, seconds in steps:
        passed += seconds
        print(f"{name:<11} {step:<36} {seconds:>6.1f} s {passed / 60:>6.1f} min")
