"""P1, Table 4: single-pass clustering against the index of four blocks, and how much the index compares.

P1 estimates that a look-up among F fingerprints compares with about 4 * F / 2^16 of them. The comparisons are
counted here, for fingerprints of made-up petitions and for random ones, on which the estimate rests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.candidates import count_pairs, fingerprints, warm_up
from benchmarks.papers.petition_records import cut_contents, with_weighted_columns
from benchmarks.papers.report import print_finding, side_by_side
from benchmarks.plot import log_log_svg
from db_dedup.flow.candidates.blocks import BLOCK_COUNT, BLOCK_SHIFTS
from db_dedup.methods import frequency, simhash64, single_pass
from db_dedup.sample import generate_petitions

RADIUS = 3
PLOT = Path(__file__).parents[2] / "docs" / "explanation" / "papers-p1-clusters.svg"
_BUCKETS = 1 << 16
_PLANTED_SHARE = 0.02
_MANY = 200_000
_RANDOM = "random fingerprints"


@dataclass(frozen=True)
class Sizes:
    """At most so many petitions, and so many random fingerprints."""

    petitions: int = 30_000
    rows: int = 100_000


SMALL = Sizes(petitions=300, rows=3_000)


@dataclass(frozen=True)
class Line:
    """One line of the table: CPU seconds and counted comparisons of both."""

    rows: int
    single_seconds: float
    single_comparisons: int
    index_seconds: float
    index_comparisons: int

    @property
    def a_look_up(self) -> float:
        """Comparisons of one look-up among all rows: each pair of a bucket is two look-ups'."""
        return 2 * self.index_comparisons / self.rows

    @property
    def estimate(self) -> float:
        """P1's for it."""
        return BLOCK_COUNT * self.rows / _BUCKETS


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    plot: Path | None = None,
) -> None:
    """Print the CPU seconds of both and their comparisons, and draw the seconds of the usual sizes."""
    if sizes == Sizes():
        plot = plot or PLOT
    warm_up()
    single_pass(np.arange(9, dtype=np.uint64), RADIUS)
    petitions = generate_petitions(sizes.petitions).petitions
    real = simhash64(frequency(with_weighted_columns(petitions, cut_contents(petitions))))
    rng = np.random.default_rng(1)
    random = fingerprints(rng, sizes.rows, int(_PLANTED_SHARE * sizes.rows))
    rng.shuffle(random)
    tables = {
        "made-up petitions": [measure(real[:rows]) for rows in _steps(real.size)],
        _RANDOM: [measure(random[:rows]) for rows in _steps(random.size)],
    }
    print(f"within {RADIUS} bits; CPU seconds, medians of three by turns; once above {_MANY:,} rows")
    for kind, lines in tables.items():
        _print_table(kind, lines)
    if plot is not None:
        plot.write_text(draw(tables[_RANDOM]), encoding="utf-8")
        print(f"drawn in {plot}")
    _print_verdicts(tables["made-up petitions"][-1], tables[_RANDOM][-1])


def draw(table: Sequence[Line]) -> str:
    """The CPU seconds of both by rows, as SVG."""
    lines = {
        "single-pass": {line.rows: line.single_seconds for line in table},
        "index of blocks": {line.rows: line.index_seconds for line in table},
    }
    return log_log_svg(lines, "Single-pass clustering and the index of blocks", "rows", "CPU seconds")


def measure(values: NDArray[np.uint64]) -> Line:
    """Time both by turns, three times or, for many rows, once, and count."""
    comparisons = []
    seconds = side_by_side(
        {
            "single": lambda: comparisons.append(single_pass(values, RADIUS).comparisons),
            "index": lambda: count_pairs(values, RADIUS),
        },
        runs=3 if values.size <= _MANY else 1,
    )
    return Line(values.size, seconds["single"], comparisons[0], seconds["index"], bucket_comparisons(values))


def bucket_comparisons(values: NDArray[np.uint64]) -> int:
    """How many pairs share a bucket, a pair counted for each of the four blocks in which it does."""
    total = 0
    for shift in BLOCK_SHIFTS:
        blocks = (values >> np.uint64(shift)) & np.uint64(_BUCKETS - 1)
        sizes = np.bincount(blocks.astype(np.int64))
        total += int(np.sum(sizes * (sizes - 1))) // 2
    return total


def _steps(most: int) -> list[int]:
    return [rows for rows in (most // 10, most // 3, most) if rows > 1]


def _print_table(kind: str, lines: Sequence[Line]) -> None:
    print(f"\n{kind:<20} {'':>10} {'':>13} {'':>10} {'':>13} {'':>7} {'comparisons of a look-up':>25}")
    print(
        f"{'rows':>20} {'single s':>10} {'comparisons':>13} {'index s':>10} {'comparisons':>13} "
        f"{'x':>7} {'counted':>12} {'4F/2^16':>12}"
    )
    for line in lines:
        print(
            f"{line.rows:>20,} {line.single_seconds:>10.4f} {line.single_comparisons:>13,} "
            f"{line.index_seconds:>10.4f} {line.index_comparisons:>13,} "
            f"{line.single_seconds / max(line.index_seconds, 1e-9):>7.1f} "
            f"{line.a_look_up:>12.2f} {line.estimate:>12.2f}"
        )


def _print_verdicts(petitions: Line, random: Line) -> None:
    print_finding(
        "the index is much faster than single-pass clustering, to 30,000 petitions",
        f"{petitions.single_seconds / petitions.index_seconds:.1f} times faster for {petitions.rows:,} "
        f"petitions, {random.single_seconds / random.index_seconds:.1f} times for {random.rows:,} random "
        "fingerprints",
        petitions.index_seconds < petitions.single_seconds and random.index_seconds < random.single_seconds,
        "both are compiled loops; single-pass time grows with the square of the rows that are alike to none",
    )
    print_finding(
        "a look-up among F fingerprints compares with about 4 * F / 2^16",
        f"random fingerprints {random.a_look_up / random.estimate:.2f} times the estimate, made-up petitions "
        f"{petitions.a_look_up / petitions.estimate:.1f} times",
        0.8 < random.a_look_up / random.estimate < 1.25,
        "it holds for blocks that are evenly spread; petitions share words, so that their blocks are not",
    )
