"""First scans of two sets of real texts by the command line, beside the same texts only cut into words.

The floor: the texts of the articles of law cut by two threads of rjieba, in one process, from memory.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import rjieba

from benchmarks.datasets import read_articles, read_titles
from benchmarks.growth import print_heading, print_scan, scan_once
from benchmarks.servers import DATABASES, each_database

_THREADS = 2


@dataclass(frozen=True)
class Sizes:
    """How many texts of each set are read; 0 for all of them."""

    articles: int = 0
    titles: int = 0


SMALL = Sizes(500, 500)


def run(data: Path | None, sizes: Sizes = Sizes(), databases: Sequence[str] = DATABASES) -> None:
    """Print wall time, CPU time, peak memory and store of each scan."""
    assert data is not None
    articles = [str(row["text"]) for row in read_articles(data)[: sizes.articles or None]]
    titles = list(read_titles(data, sizes.titles or 10**9))
    print(f"cut by {_THREADS} threads: {cut_all(articles):.1f} s for {len(articles):,} articles")
    print_heading()
    for what, texts in (("cn-law-articles", articles), ("weibo-hot-search", titles)):
        for name, url in each_database(databases):
            print_scan(what, name, len(texts), scan_once(url, iter(texts)))


def cut_all(texts: Sequence[str]) -> float:
    """Return the wall seconds of cutting all texts, half of them in each thread."""
    start = perf_counter()
    with ThreadPoolExecutor(_THREADS) as threads:
        parts = [texts[i::_THREADS] for i in range(_THREADS)]
        list(threads.map(lambda part: [rjieba.cut(one) for one in part], parts))
    return perf_counter() - start
