"""What prefixes take for texts of 31 to 60 characters, beside bands: hashes a row, and candidates a look-up.

A row's prefix is the first of its 3-grams in an order that is the same for all rows. With prefixes as long
as the measure calls for, two rows that it confirms always have one in common. The best order of all puts the
rarest 3-grams of the table first; the frozen order is measured on a sample.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Final

import numpy as np

from benchmarks.datasets import read_articles, read_petitions
from benchmarks.short_texts import distinct
from db_dedup.config import watched_table
from db_dedup.flow.candidates.common_grams import measure_common_grams
from db_dedup.flow.candidates.short_texts import MOST_GRAMS
from db_dedup.flow.candidates.sketches import least_in_common
from db_dedup.flow.compare.measures import MEASURES
from db_dedup.flow.features.characters import SHORT
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.text.compared import compared_columns
from db_dedup.jobs.scan.frames import SAMPLE_ROWS
from db_dedup.records.frames import NO_FRAMES, FrameList

WATCHED: Final = watched_table("texts", {"columns": {"text": 1}, "frames": False})
_ASKED: Final = 500
_SEED: Final = 5


@dataclass(frozen=True)
class Sizes:
    """At most so many texts of each kind."""

    rows: int = 1_000_000


SMALL = Sizes(rows=1_000)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print the length of prefixes, and what look-ups with them read in two tables."""
    assert data is not None
    print(f"3-grams of a text, and the prefix that finds all pairs of two texts of at most {MOST_GRAMS}")
    for size in (10, 20, 28, 30, 35, 40, 45, 50, MOST_GRAMS):
        print(f"{size:>8} {prefix_size(size):>8}")
    report("articles of law", [str(row["text"]) for row in read_articles(data)[: sizes.rows]])
    texts = [str(row["content"]) for row in read_petitions(data)[: sizes.rows]]
    report("sentences of petitions", [part for text in texts for part in re.split(r"[。！？\n]", text)])


def prefix_size(size: int) -> int:
    """Return how many of so many 3-grams must be hashes, by the bound of the measure of `balanced`."""
    rule = WATCHED.rule
    least_shared = MEASURES[rule.similarity].least_shared
    bounds = [(other, least_shared(rule.threshold, size, other)) for other in range(1, MOST_GRAMS + 1)]
    return 1 + size - min(least for other, least in bounds if least <= min(size, other))


def report(name: str, texts: Sequence[str]) -> None:
    """Print what a look-up reads of one table of texts."""
    once = distinct(texts)
    recipe = WATCHED.recipe
    sample = random.Random(_SEED).sample(once, min(SAMPLE_ROWS, len(once)))
    columns = compared_columns(recipe.columns, recipe.normaliser, [(text,) for text in sample])
    order = FrameList((), measure_common_grams(recipe.columns, columns, NO_FRAMES))
    rows, fixed, bands = (
        chosen_rows(Fingerprinter(each).fingerprint([(text,) for text in once]))
        for each in (replace(recipe, frames=order), recipe, replace(recipe, short_threshold=0.0))
    )
    is_longer = {tuple(grams) for grams, _ in rows}
    bands = [row for row in bands if tuple(row[0]) in is_longer]
    print(f"\n{name}: {len(rows):,} distinct texts of {SHORT + 1} to {MOST_GRAMS + 2} characters")
    print(f"{'':<44} {'hashes':>7} {'rows that share enough':>30}")
    print(f"{'':<44} {'a row':>7} {'mean':>10} {'median':>9} {'95 %':>9}")
    asked = random.Random(_SEED).sample(range(len(rows)), min(_ASKED, len(rows)))
    counts = Counter(gram for grams, _ in rows for gram in grams)
    _print_line("bands and passage hashes (other rules)", [sketch for _, sketch in bands], asked)
    _print_line("prefix and passage hashes, fixed order", [sketch for _, sketch in fixed], asked)
    _print_line("prefix and passage hashes, frozen order", [sketch for _, sketch in rows], asked)
    ordered = [sorted(grams, key=lambda gram: (counts[gram], gram)) for grams, _ in rows]
    prefixes = [grams[: prefix_size(len(grams))] for grams in ordered]
    _print_line("prefix alone, best order of all", prefixes, asked)


def chosen_rows(done: FingerprintedRows) -> list[tuple[list[int], list[int]]]:
    """Return (3-grams, hashes of the sketch) of the rows that are not short and have few 3-grams."""
    features, sketches = done.features, done.sketches
    is_short = np.diff(done.details.section(0)[0]) > 0
    chosen = np.flatnonzero(~is_short & (features.counts > 0) & (features.counts <= MOST_GRAMS))
    return [
        (features.hashes[features.starts[row] : features.starts[row + 1]].tolist(), sketches.of(row).tolist())
        for row in chosen.tolist()
    ]


def _print_line(name: str, hashes: Sequence[Sequence[int]], asked: Sequence[int]) -> None:
    rows_of: defaultdict[int, list[int]] = defaultdict(list)
    for row, own in enumerate(hashes):
        for value in own:
            rows_of[value].append(row)
    found = []
    for row in asked:
        common = Counter(other for value in hashes[row] for other in rows_of[value] if other != row)
        shares_even = {other for value in hashes[row] if value % 2 == 0 for other in rows_of[value]} - {row}
        least = {other: least_in_common(min(len(hashes[row]), len(hashes[other]))) for other in common}
        enough = [other in shares_even or count >= int(least[other]) for other, count in common.items()]
        found.append(sum(enough))
    entries = mean(map(len, hashes))
    print(
        f"{name:<44} {entries:>7.1f} {mean(found):>10,.1f} {median(found):>9,.0f} "
        f"{np.percentile(found, 95):>9,.0f}",
        flush=True,
    )
