"""P1, Table 4: single-pass clustering against the index of four blocks, and how much the index compares.

P1 estimates that a look-up among F fingerprints compares with about 4 * F / 2^16 of them. The comparisons are
counted here, for fingerprints of made-up petitions and for random ones, on which the estimate rests.

Single-pass clustering of a million rows takes minutes. Above `MEASURED` rows its comparisons are counted from
the pairs that the index finds, and its time is that of a comparison among `MEASURED` rows.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.candidates import count_pairs, fingerprints, warm_up
from benchmarks.papers.petition_records import cut_contents, with_weighted_columns
from benchmarks.papers.report import print_finding, side_by_side
from benchmarks.plot import log_log_svg
from db_dedup.flow.candidates.blocks import BLOCK_COUNT, candidate_pairs
from db_dedup.methods import frequency, simhash64, single_pass
from db_dedup.records.fingerprints import BLOCK_SHIFTS
from db_dedup.sample import generate_petitions

RADIUS = 3
PLOT = Path(__file__).parents[2] / "docs" / "explanation" / "papers-p1-clusters.svg"
_BUCKETS = 1 << 16
MEASURED = 100_000
"""Single-pass clustering is done for at most so many rows."""
_PLANTED_SHARE = 0.02
_RANDOM = "random fingerprints"


@dataclass(frozen=True)
class Sizes:
    """At most so many petitions, and so many random fingerprints."""

    petitions: int = 30_000
    rows: int = 1_000_000


SMALL = Sizes(petitions=300, rows=3_000)


@dataclass(frozen=True)
class Line:
    """One line of the table: CPU seconds and counted comparisons of both."""

    rows: int
    single_seconds: float
    single_comparisons: int
    index_seconds: float
    index_comparisons: int
    is_estimated: bool = False
    """Single-pass clustering was not done; its seconds are an estimate."""

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
        "made-up petitions": measure_steps(real),
        _RANDOM: measure_steps(random),
    }
    print(f"within {RADIUS} bits; CPU seconds, medians of three by turns")
    print(f"~ estimated: comparisons counted, times the seconds of one among at most {MEASURED:,} rows")
    for kind, lines in tables.items():
        _print_table(kind, lines)
    if plot is not None:
        plot.write_text(draw(tables[_RANDOM]), encoding="utf-8")
        print(f"drawn in {plot}")
    _print_verdicts(tables["made-up petitions"][-1], tables[_RANDOM][-1])


def draw(table: Sequence[Line]) -> str:
    """The CPU seconds of both by rows, as SVG."""
    lines = {
        "single-pass": {line.rows: line.single_seconds for line in table if not line.is_estimated},
        "single-pass, estimated": {line.rows: line.single_seconds for line in table if line.is_estimated},
        "index of blocks": {line.rows: line.index_seconds for line in table},
    }
    lines = {name: line for name, line in lines.items() if line}
    return log_log_svg(lines, "Single-pass clustering and the index of blocks", "rows", "CPU seconds")


def measure_steps(values: NDArray[np.uint64]) -> list[Line]:
    """Measure the first rows, more and more of them; single-pass clustering only while it is quick."""
    rows = _steps(values.size)
    lines = [measure(values[:size]) for size in rows if size <= MEASURED]
    measured = lines[-1] if lines else measure(values[:MEASURED])
    a_comparison = measured.single_seconds / max(measured.single_comparisons, 1)
    return lines + [estimate(values[:size], a_comparison) for size in rows if size > MEASURED]


def measure(values: NDArray[np.uint64]) -> Line:
    """Time both by turns, and count."""
    comparisons = []
    seconds = side_by_side(
        {
            "single": lambda: comparisons.append(single_pass(values, RADIUS).comparisons),
            "index": lambda: count_pairs(values, RADIUS),
        },
    )
    return Line(values.size, seconds["single"], comparisons[0], seconds["index"], bucket_comparisons(values))


def estimate(values: NDArray[np.uint64], seconds_a_comparison: float) -> Line:
    """Time the index, and count the comparisons of single-pass clustering without doing them."""
    seconds = side_by_side({"index": lambda: count_pairs(values, RADIUS)})
    comparisons = single_pass_comparisons(values)
    return Line(
        values.size,
        comparisons * seconds_a_comparison,
        comparisons,
        seconds["index"],
        bucket_comparisons(values),
        is_estimated=True,
    )


def single_pass_comparisons(values: NDArray[np.uint64]) -> int:
    """How many fingerprints `single_pass` compares: counted from the pairs of near rows alone.

    A row that is near to no first row of a cluster is compared with all of them; another one with those up to
    the first that is near.
    """
    earlier: defaultdict[int, list[int]] = defaultdict(list)
    for left, right in candidate_pairs(values, RADIUS):
        for one, other in zip(left.tolist(), right.tolist(), strict=True):
            earlier[other].append(one)
    joined: list[int] = []
    joining = set[int]()
    comparisons = 0
    for row in sorted(earlier):
        firsts = [one for one in earlier[row] if one not in joining]
        if firsts:
            first = min(firsts)
            # The clusters before it: the rows before it that began one.
            comparisons += first - bisect_left(joined, first) + 1
            joined.append(row)
            joining.add(row)
    clusters = values.size - len(joined)
    # The first row of the last cluster is compared with `clusters` - 1 others, that of the first with none.
    return comparisons + clusters * (clusters - 1) // 2


def bucket_comparisons(values: NDArray[np.uint64]) -> int:
    """How many pairs share a bucket, a pair counted for each of the four blocks in which it does."""
    total = 0
    for shift in BLOCK_SHIFTS:
        blocks = (values >> np.uint64(shift)) & np.uint64(_BUCKETS - 1)
        sizes = np.bincount(blocks.astype(np.int64))
        total += int(np.sum(sizes * (sizes - 1))) // 2
    return total


def _steps(most: int) -> list[int]:
    # Of very many rows also some that single-pass clustering is done for.
    parts = (100, 10, 3, 1) if most > MEASURED else (10, 3, 1)
    return [most // part for part in parts if most // part > 1]


def _print_table(kind: str, lines: Sequence[Line]) -> None:
    print(f"\n{kind:<20} {'':>10} {'':>15} {'':>10} {'':>13} {'':>7} {'comparisons of a look-up':>25}")
    print(
        f"{'rows':>20} {'single s':>10} {'comparisons':>15} {'index s':>10} {'comparisons':>13} "
        f"{'x':>7} {'counted':>12} {'4F/2^16':>12}"
    )
    for line in lines:
        print(
            f"{line.rows:>20,} {_seconds(line):>10} {line.single_comparisons:>15,} "
            f"{line.index_seconds:>10.4f} {line.index_comparisons:>13,} "
            f"{line.single_seconds / max(line.index_seconds, 1e-9):>7.1f} "
            f"{line.a_look_up:>12.2f} {line.estimate:>12.2f}"
        )


def _seconds(line: Line) -> str:
    return f"~{line.single_seconds:.0f}" if line.is_estimated else f"{line.single_seconds:.4f}"


def _print_verdicts(petitions: Line, random: Line) -> None:
    print_finding(
        "the index is much faster than single-pass clustering, to 30,000 petitions",
        f"{petitions.single_seconds / petitions.index_seconds:.1f} times faster for {petitions.rows:,} "
        f"petitions, {random.single_seconds / random.index_seconds:.0f} times for {random.rows:,} random "
        f"fingerprints{' (estimated)' if random.is_estimated else ''}",
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
