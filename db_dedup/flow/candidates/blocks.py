"""Step 5: find all fingerprints within k bits of each other; no pair is missed.

Multi-index hashing (Norouzi, Punjani, Fleet 2012). By the pigeonhole principle two fingerprints within k bits
agree, in one of four 16-bit blocks, within floor(k/4) bits; with q, a = divmod(k, 4) it is enough to search
the first a + 1 blocks within q bits and the others within q - 1. `block_radii` and `block_values` give these
numbers for one row. `candidate_pairs` searches the same blocks for all rows at once, bucket against bucket.
Two large buckets are searched by longer keys, if the comparisons that are counted are fewer (`_pieces`). Two
that take too many comparisons even so (a hot pair) are divided again by their remaining blocks.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.candidates import _bucket_join as kernels
from db_dedup.records.fingerprints import BLOCK_BITS, BLOCK_SHIFTS

MAX_RADIUS: Final = 11
BLOCK_COUNT: Final = len(BLOCK_SHIFTS)

# Two buckets that take more comparisons than this, however they are searched, are divided by another block.
_HOT_COMPARISONS = 1 << 22
# So many of a whole table are made without buckets. It takes less than 0.05 s, and a small table then needs
# no kernels of the buckets, which take three seconds to compile.
_FEW_COMPARISONS = 1 << 24
# To sort a row by a piece of its bits and to compare it takes 13 ns, a comparison in a row of buckets 0.13 ns
# (decision 0074).
_SORTING = 100
_CHUNK = 1 << 20
# Of rows that agree in `within`: so many or fewer are compared with each other, for all such classes at once.
_SMALL_CLASS = 128
_FEWEST_BITS = np.bitwise_count(np.arange(1 << BLOCK_BITS, dtype=np.uint16))


def block_radii(radius: int, block_count: int = BLOCK_COUNT) -> list[int]:
    """Return by how many bits each block may differ; -1 for a block that need not be searched."""
    quotient, remainder = divmod(radius, block_count)
    return [quotient if i <= remainder else quotient - 1 for i in range(block_count)]


@cache
def flip_masks(radius: int) -> NDArray[np.int64]:
    """Return every 16-bit mask with at most `radius` bits set, fewest first: 1, 17, 137, 697 of them."""
    masks = [0]
    for size in range(1, radius + 1):
        masks += [sum(1 << bit for bit in bits) for bits in combinations(range(BLOCK_BITS), size)]
    return np.array(masks, np.int64)


def block_values(fingerprint: int, radius: int) -> list[list[int]]:
    """Return for each of the four blocks the values to look up to find all rows within `radius` bits."""
    return [
        [((fingerprint >> shift) & 0xFFFF) ^ mask for mask in flip_masks(block_radius).tolist()]
        if block_radius >= 0
        else []
        for shift, block_radius in zip(BLOCK_SHIFTS, block_radii(radius), strict=True)
    ]


def candidate_pairs(
    fingerprints: NDArray[np.uint64],
    radius: int,
    labels: NDArray[np.int32] | None = None,
    within: NDArray[np.integer[Any]] | None = None,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield all pairs of rows whose fingerprints differ in at most `radius` bits, each once, in chunks.

    Args:
        fingerprints: uint64[n], equal ones allowed.
        radius: bits, 0 to 11.
        labels: int32[n] or None. Pairs with equal labels are left out. The caller may merge labels between
            two chunks: rows of one group need no comparison, so that a cluster of near-equal rows does not
            take time with its square.
        within: int[n] or None. Only rows with equal values are paired.

    Yields:
        (left, right), int32[p] row numbers, left < right.
    """
    if not 0 <= radius <= MAX_RADIUS:
        raise ValueError(f"radius must be 0 to {MAX_RADIUS} bits, not {radius}")
    search = _Search(fingerprints, radius, labels)
    if within is None or not np.any(within[1:] != within[:-1]):
        everyone = np.arange(fingerprints.size, dtype=np.int32)
        yield from search.join(everyone, None, BLOCK_SHIFTS, radius, [])
        return
    rows = np.argsort(within, kind="stable").astype(np.int32)
    bounds = np.flatnonzero(np.diff(within[rows], prepend=within[rows[0]] - 1, append=within[rows[-1]] + 1))
    yield from search.join_small(rows, bounds)
    for first, end in itertools.pairwise(bounds.tolist()):
        if end - first > _SMALL_CLASS:
            yield from search.join(rows[first:end], None, BLOCK_SHIFTS, radius, [])


_Rows = NDArray[np.int32]
"""Numbers of rows."""

_Done = list[tuple[int, int]]
"""(mask, radius): an earlier block found the pairs whose difference under the mask is within the radius."""


class _Search:
    """One search over all rows, recursing into hot bucket pairs."""

    def __init__(
        self, fingerprints: NDArray[np.uint64], radius: int, labels: NDArray[np.int32] | None
    ) -> None:
        self._values = fingerprints
        self._radius = radius
        # Without labels every row has its own label, so no pair is left out.
        self._labels = np.arange(fingerprints.size, dtype=np.int32) if labels is None else labels

    def join_small(
        self, rows: NDArray[np.int32], bounds: NDArray[np.intp]
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Yield the near pairs of each small class of rows, by comparing each row with those after it.

        Args:
            rows: int32[n], class by class, ascending within each.
            bounds: int[c + 1], where each class begins, and n.
        """
        sizes = np.diff(bounds)
        after = np.repeat(bounds[1:], sizes) - np.arange(rows.size)  # rows of the class from this one on
        after[np.repeat(sizes > _SMALL_CLASS, sizes)] = 0
        for distance in range(1, _SMALL_CLASS):
            left = np.flatnonzero(after > distance)
            if not left.size:
                return
            a, b = rows[left], rows[left + distance]
            is_near = np.bitwise_count(self._values[a] ^ self._values[b]) <= self._radius
            is_near &= self._labels[a] != self._labels[b]
            if is_near.any():
                yield a[is_near], b[is_near]

    def join(
        self, left: _Rows, right: _Rows | None, shifts: Sequence[int], radius: int, done: _Done
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Yield the pairs of left and right that differ by at most `radius` bits within these blocks.

        If right is None, the pairs are those within left.
        """
        if radius < 0:
            return
        radii = block_radii(radius, len(shifts)) if shifts else []
        if not shifts or self._comparing_is_cheaper(left, right, radii):
            yield from self._compare_all(left, right, done)
            return
        done = list(done)
        for shift, block_radius in zip(shifts, radii, strict=True):
            if block_radius < 0:
                continue
            yield from self._join_block(
                left, right, shift, block_radius=block_radius, shifts=shifts, radius=radius, done=done
            )
            done.append((0xFFFF << shift, block_radius))

    def _comparing_is_cheaper(self, left: _Rows, right: _Rows | None, radii: Sequence[int]) -> bool:
        left_size = left.size
        comparisons = self._count_comparisons(left, right)
        if comparisons <= (_FEW_COMPARISONS if self._is_whole(left, right) else _HOT_COMPARISONS):
            return True
        buckets = min(1 << BLOCK_BITS, left_size)
        visits = sum(buckets * flip_masks(r).size for r in radii if r >= 0)
        return comparisons <= visits

    def _is_whole(self, left: _Rows, right: _Rows | None) -> bool:
        return right is None and left.size == self._labels.size

    def _count_comparisons(self, left: _Rows, right: _Rows | None) -> int:
        """Return the number of pairs of rows with different labels."""
        if self._is_whole(left, right):
            sizes = np.bincount(self._labels)  # of all rows: no sorting, and no copy of the labels
            return int(left.size**2 - np.dot(sizes, sizes)) // 2
        groups, sizes = np.unique(self._labels[left], return_counts=True)
        if right is None:
            return int(left.size**2 - np.sum(sizes**2)) // 2
        others, other_sizes = np.unique(self._labels[right], return_counts=True)
        _, i, j = np.intersect1d(groups, others, assume_unique=True, return_indices=True)
        return int(left.size * right.size - np.sum(sizes[i] * other_sizes[j]))

    def _join_block(
        self,
        left: _Rows,
        right: _Rows | None,
        shift: int,
        *,
        block_radius: int,
        shifts: Sequence[int],
        radius: int,
        done: _Done,
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        masks = flip_masks(block_radius)
        a = kernels.bucket_rows(self._values, left, shift)
        b = a if right is None else kernels.bucket_rows(self._values, right, shift)
        found_before = _as_arrays(done)
        limits = kernels.Limits(_SORTING, _HOT_COMPARISONS, _CHUNK)
        bucket = 0
        while bucket < 1 << BLOCK_BITS:
            bucket, found_left, found_right, hot = kernels.join_buckets(
                a, b, right is None, self._labels, bucket, masks, self._radius, found_before,
                shift if shifts == BLOCK_SHIFTS else -1, limits,
            )  # fmt: skip
            if found_left.size:
                yield found_left, found_right
            rest = [other for other in shifts if other != shift]
            for u, v in hot.tolist():
                inner_left = _bucket(a, u)
                inner_right = None if right is None and u == v else _bucket(b, v)
                yield from self.join(inner_left, inner_right, rest, radius - int(_FEWEST_BITS[u ^ v]), done)

    def _compare_all(
        self, left: _Rows, right: _Rows | None, done: _Done
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        found_before = _as_arrays(done)
        a = kernels.sort_by_label(self._values, self._labels, left)
        b = a if right is None else kernels.sort_by_label(self._values, self._labels, right)
        position = 0
        while position < left.size:
            position, found_left, found_right = kernels.compare_all(
                a, b, right is None, self._labels, position, self._radius, found_before, _CHUNK
            )
            if found_left.size:
                yield found_left, found_right


def _as_arrays(done: _Done) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    return (
        np.array([mask for mask, _ in done], np.uint64),
        np.array([radius for _, radius in done], np.int64),
    )


def _bucket(
    bucketed: tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]], value: int
) -> NDArray[np.int32]:
    _, rows, starts = bucketed
    return rows[starts[value] : starts[value + 1]]
