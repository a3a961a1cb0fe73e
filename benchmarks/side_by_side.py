"""db-dedup beside two packages of `peers`: from one SQLite file to a written list of pairs, as programs.

Each runs in a process of its own, segmentation counted, by the setting of its own documentation. db-dedup
also leaves a store that a worker keeps up to date; its list has every pair of rows.
"""

import json
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import read_articles
from benchmarks.peer_packages import PEERS
from benchmarks.processes import Measured, measure
from benchmarks.scanning import fill
from db_dedup.sample import generate_petitions

NAMES = ("rensa RMinHashLSH", "datasketch MinHashLSH")
_SETTINGS = '[database]\nurl = {url}\n[tables.texts.columns]\ntext = {{ kind = "text" }}\n'
_CLI = "db_dedup.cli"


@dataclass(frozen=True)
class Sizes:
    """How many texts."""

    rows: int = 100_000


SMALL = Sizes(rows=300)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a line for each program."""
    texts = sample_texts(data, sizes.rows)
    what = "articles of law" if data else "made-up petitions"
    print(f"{len(texts):,} {what}, from a SQLite file to a CSV file of pairs; each in a process of its own")
    print(f"{'':<22} {'wall s':>8} {'CPU s':>8} {'PSS MB':>8} {'anonymous':>10} {'pairs':>10}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "source.db", [{"text": text} for text in texts])
        for peer in PEERS:
            if peer.name not in NAMES:
                continue
            if why := peer.missing():
                print(f"NOT MEASURED: {peer.name}: {why}")
                continue
            target = folder / "peer.csv"
            taken = measure("benchmarks.peer_process", peer.name, str(folder / "source.db"), str(target))
            tell(peer.name, taken, target)
        _tell_ours(folder)


def _tell_ours(folder: Path) -> None:
    """A line for each command: the scan, the list, and both."""
    url = json.dumps(f"sqlite:///{folder / 'source.db'}")
    (folder / "dedup.toml").write_text(_SETTINGS.format(url=url), encoding="utf-8")
    warm = folder / "warm"
    warm.mkdir()
    shutil.copy(folder / "source.db", warm)
    (warm / "dedup.toml").write_text(
        _SETTINGS.format(url=json.dumps(f"sqlite:///{warm / 'source.db'}")), encoding="utf-8"
    )
    listing = ("pairs", "texts", "--expand", "--format", "csv")
    for place in (warm, folder):  # the first one compiles the kernels that such texts need
        target = place / "pairs.csv"
        measure(_CLI, "upgrade", folder=place)
        scan = measure(_CLI, "scan", "texts", folder=place)
        listed = measure(_CLI, *listing, output=target, folder=place)
    tell("db-dedup scan", scan, None)
    tell("db-dedup pairs", listed, target)
    tell("db-dedup, both", scan.followed_by(listed), target)


def tell(name: str, taken: Measured, pairs: Path | None) -> None:
    """Print one line; `pairs` is the list, with a header."""
    count = ""
    if pairs is not None:
        with pairs.open("rb") as file:
            count = f"{sum(1 for _ in file) - 1:,}"
    print(
        f"{name:<22} {taken.wall:>8.1f} {taken.cpu:>8.1f} {taken.proportional:>8.0f} "
        f"{taken.anonymous:>10.0f} {count:>10}",
        flush=True,
    )


def sample_texts(data: Path | None, count: int) -> list[str]:
    """So many articles of law, or made-up petitions where there is no data."""
    if data is None:
        return [petition.content for petition in generate_petitions(count).petitions]
    texts = [str(row["text"]) for row in read_articles(data)]
    return random.Random(1).sample(texts, min(count, len(texts)))
