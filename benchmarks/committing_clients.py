"""Commits a second of clients that insert a row each on PostgreSQL, with our triggers and without.

The clients are PostgreSQL's own pgbench: in Python they would be slower than the server, and hide the cost.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from sqlalchemy import Engine, text

from benchmarks.servers import durable_postgresql, each_database
from benchmarks.trigger_cost import ATTACHED, PLAIN, empty, prepare
from db_dedup.app import Database
from tests.servers import ServerUnavailableError

CLIENTS: Final = 8

_THREADS: Final = 2
_BINARIES: Final = text("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
_INSERT: Final = "INSERT INTO {table} (title, content, created_at) VALUES ('{title}', '{content}', now());\n"
_TITLE: Final = "关于小区停水三天无人处理的投诉"


@dataclass(frozen=True)
class Sizes:
    """How long the clients commit in each round, and how many rounds there are."""

    seconds: int = 3
    rounds: int = 21


SMALL: Final = Sizes(1, 2)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:  # noqa: ARG001 - it needs none
    """Print the commits a second where they reach the disk, and where they do not."""
    print(
        f"{CLIENTS} clients of pgbench, each insert a transaction, {sizes.seconds} s; medians of "
        f"{sizes.rounds} rounds, in each of which both tables have their turn"
    )
    print(f"{'commits a second':<50} {'plain':>9} {'attached':>9} {'ratio':>6} {'of the rounds':>14}")
    try:
        with durable_postgresql() as url:
            report("PostgreSQL, commits reach the disk", url, sizes)
    except ServerUnavailableError as error:
        print(f"PostgreSQL: not measured ({error})")
        return
    for name, url in each_database(("PostgreSQL",)):
        report(f"{name}, fsync off: the processor's time alone", url, sizes)


def report(what: str, url: str, sizes: Sizes) -> None:
    """One line of the table."""
    with closing(Database(url)) as database:
        prepare(database, [], 0)
        rounds = []
        for turn in range(sizes.rounds):
            found = {}
            for table in (PLAIN, ATTACHED) if turn % 2 else (ATTACHED, PLAIN):
                empty(database, table)
                found[table.name] = commits_a_second(database.engine, table.name, sizes.seconds)
            rounds.append((found[PLAIN.name], found[ATTACHED.name]))
    plain, attached = (median(side) for side in zip(*rounds, strict=True))
    ratios = sorted(b / a for a, b in rounds)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(f"{what:<50} {plain:>9,.0f} {attached:>9,.0f} {median(ratios):>6.2f} {spread:>14}", flush=True)


def commits_a_second(engine: Engine, table: str, seconds: int) -> float:
    """Let the clients insert into a table of petitions for some seconds.

    Raises:
        FileNotFoundError: the server has come without pgbench.
        subprocess.CalledProcessError: pgbench failed.
    """
    with engine.connect() as connection:
        pgbench = Path(connection.execute(_BINARIES).scalar_one()) / "pgbench"
    url = engine.url
    with script(_INSERT.format(table=table, title=_TITLE, content=_TITLE * 12)) as file:
        command = [
            str(pgbench), "--no-vacuum", "--protocol=prepared", f"--file={file}", f"--client={CLIENTS}",
            f"--jobs={_THREADS}", f"--time={seconds}", f"--host={url.query['host']}",
            f"--username={url.username}", str(url.database),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    if found is None:
        raise ValueError(f"pgbench printed no rate: {done.stdout}")
    return float(found[1])


@contextmanager
def script(statement: str) -> Iterator[Path]:
    """A file with one statement."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "insert.sql"
        file.write_text(statement, encoding="utf-8")
        yield file
