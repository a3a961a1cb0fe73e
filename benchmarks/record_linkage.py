"""Short records in several columns: SimHash and shared 3-grams, beside splink and dedupe.

db_dedup is not made for such records; the figures show what to expect. Of db_dedup and splink both are
printed: the threshold that one would choose in advance, and the best one on these data. dedupe chooses its
threshold from labels.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.cpu import median_cpu_seconds
from benchmarks.linkage_data import Linkage, cut, read_linkages
from benchmarks.linkage_packages import (
    DISTINCT,
    MATCHES,
    MOST_BYTES,
    MOST_SECONDS,
    find_by_dedupe,
    find_by_splink,
)
from benchmarks.scanning import fill, scan_copy, watch
from benchmarks.scores import HEADER, Pair, score
from db_dedup.config import Text, Value

RUNS = 3
_UNSEEN_PROBABILITY = 0.9
_PROBABILITIES = (0.001, 0.01, 0.1, 0.5, _UNSEEN_PROBABILITY, 0.99, 0.999, 0.9999, 0.99999)
_RADII = (3, 5, 7, 9, 11)
_THRESHOLDS = (0.4, 0.45, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)


@dataclass(frozen=True)
class Sizes:
    """At most so many records of a table."""

    records: int = 1_000_000


SMALL = Sizes(records=250)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a table for each set of records."""
    assert data is not None
    print(
        f"CPU seconds: user and system, medians of {RUNS}, of dedupe one run, which is given {MATCHES} "
        f"matches and {DISTINCT} other pairs with labels; a pair that is not labelled a match counts as wrong"
    )
    for name in ("splink", "dedupe"):
        if not find_spec(name):
            print(f'NOT MEASURED: {name}: pip install -c constraints.txt -e ".[peers]"')
    for linkage in read_linkages(data):
        compare(cut(linkage, sizes.records))


def compare(linkage: Linkage) -> None:
    """Print one table."""
    tables = "two tables" if linkage.split else "one table"
    print(f"\n{linkage.name}: {len(linkage.rows):,} records in {tables}, {len(linkage.wanted):,} matches")
    print(f"{'':<50} {HEADER} {'CPU s':>7}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        fill(source, linkage.rows)
        scan_copy(source, watch(dict.fromkeys(linkage.rows[0], 1)))  # loads dictionaries and compiled kernels
        simhash, overlap = partial(_by_simhash, source, linkage), partial(_by_overlap, source, linkage)
        _measure("db-dedup, SimHash of columns, radius 3", partial(simhash, 3), linkage)
        _measure_best("db-dedup, SimHash of columns, best here: radius", simhash, _RADII, linkage)
        _measure("db-dedup, preset balanced", partial(overlap, None), linkage)
        _measure_best("db-dedup, balanced, best here:", overlap, _THRESHOLDS, linkage)
    if find_spec("splink"):
        found, seconds = median_cpu_seconds(partial(find_by_splink, linkage), RUNS)
        at = {p: {pair for pair, its in found.items() if its >= p} for p in _PROBABILITIES}
        best = max(at, key=lambda p: score(at[p], linkage.wanted).f1)
        _tell(f"splink, probability {_UNSEEN_PROBABILITY}", at[_UNSEEN_PROBABILITY], seconds, linkage)
        _tell(f"splink, best here: {best:g}", at[best], seconds, linkage)
    if find_spec("dedupe"):
        name = f"dedupe, from {MATCHES} + {DISTINCT} labels"
        try:
            _measure(name, partial(find_by_dedupe, linkage), linkage, 1)
        except (MemoryError, TimeoutError) as error:
            memory = f"{MOST_BYTES >> 30} GB of memory"
            time = f"{MOST_SECONDS} s of the processor, or more memory than there is"
            most = memory if isinstance(error, MemoryError) else time
            print(f"NOT MEASURED: {name}: it wants more than {most}")


def _by_simhash(source: Path, linkage: Linkage, radius: int) -> set[Pair]:
    """The paper's weights: a value counts as a feature of weight 2, a text by its 2-grams."""
    columns = {name: Value() if name in linkage.values else Text() for name in linkage.rows[0]}
    return scan_copy(source, watch(columns, preset="strict", radius=radius, segmenter="chars:2"))


def _by_overlap(source: Path, linkage: Linkage, threshold: float | None) -> set[Pair]:
    """All columns as one text."""
    return scan_copy(source, watch(dict.fromkeys(linkage.rows[0], 1), threshold=threshold))


def _measure_best(
    name: str, find: Callable[[float], set[Pair]], tried: tuple[float, ...], linkage: Linkage
) -> None:
    best = max(tried, key=lambda each: score(_looked_for(find(each), linkage), linkage.wanted).f1)
    _measure(f"{name} {best:g}", partial(find, best), linkage)


def _measure(name: str, find: Callable[[], set[Pair]], linkage: Linkage, runs: int = RUNS) -> None:
    found, seconds = median_cpu_seconds(find, runs)
    _tell(name, found, seconds, linkage)


def _tell(name: str, found: set[Pair], seconds: float, linkage: Linkage) -> None:
    print(f"{name:<50} {score(_looked_for(found, linkage), linkage.wanted)} {seconds:>7.2f}", flush=True)


def _looked_for(found: set[Pair], linkage: Linkage) -> set[Pair]:
    return {pair for pair in found if linkage.may_match(pair)}
