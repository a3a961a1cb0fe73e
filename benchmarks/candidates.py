"""All pairs within k bits of a million fingerprints, beside brute force and `np.sort` in the same run."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import median_seconds
from db_dedup.flow.candidates.blocks import candidate_pairs

ROWS = 1_000_000
PLANTED = 20_000
HOT_SHARE = 0.05
BRUTE_ROWS = 200


def run(data: Path | None) -> None:  # noqa: ARG001 - it needs none
    """Print times and ratios, uniform and with 5 % of the rows in one hot block."""
    uniform = fingerprints(np.random.default_rng(1), ROWS, PLANTED)
    sort_seconds = median_seconds(lambda: np.sort(uniform), 9)
    brute = brute_force_seconds(uniform)
    print(f"{ROWS:,} random fingerprints, {PLANTED:,} pairs planted; np.sort {sort_seconds * 1e3:.1f} ms;")
    print(f"numpy brute force {brute:.0f} s ({BRUTE_ROWS} rows against all, scaled to all pairs)")
    titles = ("radius", "pairs", "seconds", "x brute", "sorts", "hot: seconds", "x uniform")
    print("{:>6} {:>9} {:>8} {:>8} {:>6} {:>13} {:>10}".format(*titles))
    hot = with_hot_block(uniform)
    warm_up()
    for radius in (3, 5, 7, 9, 11):
        seconds = median_seconds(lambda r=radius: count_pairs(uniform, r), 3)  # type: ignore[misc]
        hot_seconds = median_seconds(lambda r=radius: count_pairs(hot, r), 3)  # type: ignore[misc]
        print(
            f"{radius:>6} {count_pairs(uniform, radius):>9,} {seconds:>8.2f} {brute / seconds:>8,.0f} "
            f"{seconds / sort_seconds:>6.1f} {hot_seconds:>13.2f} {hot_seconds / seconds:>10.2f}"
        )


def fingerprints(rng: np.random.Generator, rows: int, planted: int) -> NDArray[np.uint64]:
    """uint64[rows], random, the last `planted` of them one to eleven bits from another one."""
    values = rng.integers(0, 2**64, rows, dtype=np.uint64)
    partners = rng.choice(rows - planted, planted, replace=False)
    for i, partner in enumerate(partners.tolist()):
        values[rows - planted + i] = values[partner] ^ random_mask(rng, 11)
    return values


def random_mask(rng: np.random.Generator, most: int) -> np.uint64:
    """One to `most` bits set."""
    bits = rng.choice(64, int(rng.integers(1, most + 1)), replace=False)
    return np.uint64(sum(1 << int(bit) for bit in bits))


def with_hot_block(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same, but the first rows all share their first block."""
    hot = values.copy()
    size = int(HOT_SHARE * values.size)
    hot[:size] = (hot[:size] & np.uint64((1 << 48) - 1)) | np.uint64(0xABCD << 48)
    return hot


def brute_force_seconds(values: NDArray[np.uint64], radius: int = 7) -> float:
    """Seconds that one numpy thread would need for all pairs, measured on some rows against all."""

    def compare_some() -> None:
        for row in range(BRUTE_ROWS):
            np.flatnonzero(np.bitwise_count(values ^ values[row]) <= radius)

    return median_seconds(compare_some, 3) / BRUTE_ROWS * values.size / 2


def count_pairs(values: NDArray[np.uint64], radius: int) -> int:
    """How many pairs lie within the radius."""
    return sum(left.size for left, _ in candidate_pairs(values, radius))


def warm_up() -> None:
    """Compile the kernels, or load them from numba's cache."""
    count_pairs(with_hot_block(np.random.default_rng(2).integers(0, 2**64, 20_000, dtype=np.uint64)), 3)
