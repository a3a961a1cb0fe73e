"""First scans of two sets of real texts by the command line, beside the same texts only cut into words.

The floor: the texts of the articles of law cut by two threads of rjieba, in one process, from memory.
"""

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import rjieba

from benchmarks.datasets import read_articles, read_titles
from benchmarks.growth import fill, scan, warm_up
from benchmarks.servers import DATABASES, each_database
from db_dedup.app import Database

_THREADS = 2


@dataclass(frozen=True)
class Sizes:
    """How many texts of each set are read; 0 for all of them."""

    articles: int = 0
    titles: int = 0


SMALL = Sizes(500, 500)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print wall time, CPU time and peak memory of each scan."""
    assert data is not None
    articles = [str(row["text"]) for row in read_articles(data)[: sizes.articles or None]]
    titles = list(read_titles(data, sizes.titles or 10**9))
    print(f"cut by {_THREADS} threads: {cut_all(articles):.1f} s for {len(articles):,} articles")
    print("first scan at the default preset, by the command line; memory: anonymous, of db_dedup's processes")
    print(f"{'texts':<18} {'database':<11} {'rows':>9} {'wall s':>8} {'CPU s':>8} {'MB':>7}")
    warm_up()
    for what, texts in (("cn-law-articles", articles), ("weibo-hot-search", titles)):
        for name, url in each_database(databases):
            with closing(Database(url, create=True)) as database, tempfile.TemporaryDirectory() as folder:
                fill(database, iter(texts))
                taken = scan(url, Path(folder))
            print(
                f"{what:<18} {name:<11} {len(texts):>9,} {taken.wall:>8.1f} {taken.cpu:>8.1f} "
                f"{taken.anonymous:>7.0f}",
                flush=True,
            )


def cut_all(texts: Sequence[str]) -> float:
    """Return the wall seconds of cutting all texts, half of them in each thread."""
    start = perf_counter()
    with ThreadPoolExecutor(_THREADS) as threads:
        parts = [texts[i::_THREADS] for i in range(_THREADS)]
        list(threads.map(lambda part: [rjieba.cut(one) for one in part], parts))
    return perf_counter() - start
