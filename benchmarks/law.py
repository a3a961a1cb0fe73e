"""A scan of 147,288 articles of law, beside a bare loop of normalising, segmenting and hashing."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

from sqlalchemy import create_engine

from benchmarks.datasets import ARTICLES, load, read_articles
from db_dedup.config import watched_table
from db_dedup.flow.pipeline import Fingerprinter
from tests.servers import fresh_database, start_postgresql

RUNS = 3
PAGE_ROWS = 5000
SETTINGS = '[tables.articles.columns]\ntext = {{ kind = "text" }}\n[database]\nurl = {url}\n'


def run(data: Path | None) -> None:
    """Print wall time against the bare loop, and peak memory, from SQLite and PostgreSQL."""
    assert data is not None
    rows = read_articles(data)
    texts = [(str(row["text"]),) for row in rows]
    bare = median(bare_loop_seconds(texts) for _ in range(RUNS))
    print(f"{len(rows):,} articles; bare loop of steps 2 to 4 on one thread: {bare:.2f} s (median of {RUNS})")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/law.db"
        engine = create_engine(url)
        load(engine, ARTICLES, rows)
        engine.dispose()
        report("SQLite", url, Path(folder), bare)
    server = start_postgresql()
    try:
        with fresh_database(server) as database, tempfile.TemporaryDirectory() as folder:
            load(database.engine, ARTICLES, rows)
            report("PostgreSQL", database.url, Path(folder), bare)
    finally:
        server.stop()


def bare_loop_seconds(texts: list[tuple[str]]) -> float:
    """Seconds for text -> tokens -> features -> fingerprints of all texts; nothing read or written."""
    fingerprinter = Fingerprinter(watched_table("articles", {"columns": {"text": 1}}).recipe)
    fingerprinter.fingerprint(texts[:100])
    start = perf_counter()
    for first in range(0, len(texts), PAGE_ROWS):
        fingerprinter.fingerprint(texts[first : first + PAGE_ROWS])
    return perf_counter() - start


def report(name: str, url: str, folder: Path, bare: float) -> None:
    """Scan anew a few times by the command line; print the medians."""
    config = folder / "dedup.toml"
    config.write_text(SETTINGS.format(url=json.dumps(url)))
    seconds: list[float] = []
    megabytes: list[float] = []
    found: dict[str, Any] = {}
    for _ in range(RUNS):
        command(config, "uninstall", "--yes")
        command(config, "upgrade")
        output, peak = command(config, "scan", "articles", "--json")
        found = json.loads(output)
        seconds.append(found["seconds"])
        megabytes.append(peak)
    wall = median(seconds)
    print(
        f"{name}: scan {wall:.2f} s, {wall / bare:.2f} x the bare loop; peak memory of all its processes "
        f"{max(megabytes):.0f} MB; {found['pairs']:,} pairs, {found['copies']:,} copies, "
        f"{found['groups']:,} groups"
    )


def command(config: Path, *arguments: str) -> tuple[str, float]:
    """Run `db-dedup`; gives what it printed and its peak memory in MB, child processes included (Linux)."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "db_dedup.cli", *arguments, "--config", str(config)],
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, tree_megabytes(process.pid))
            sleep(0.05)
        output.seek(0)
        text = output.read().decode()
    if process.returncode:
        raise RuntimeError(f"db-dedup {' '.join(arguments)} failed")
    return text, peak


def tree_megabytes(pid: int) -> float:
    """Resident memory of a process and its children, now."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return resident * os.sysconf("SC_PAGE_SIZE") / (1 << 20) + sum(tree_megabytes(int(c)) for c in children)
